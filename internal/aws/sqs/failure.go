// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/queue"
)

// entryFailure returns the error for a failed entry. Only the code of the entry decides; its text
// is for people.
func entryFailure(doing string, b types.BatchResultErrorEntry) error {
	code := client.Normal(aws.ToString(b.Code))
	err := fmt.Errorf("%s: %s: %s", doing, code, aws.ToString(b.Message))
	switch code {
	case "ReceiptHandleIsInvalid", "MessageNotInflight":
		return fmt.Errorf("%w: %w", queue.ErrGone, err)
	case "InvalidParameterValue":
		// AWS uses this code for a handle whose message was deleted or is visible again. All other
		// values of an entry are checked before, except the sum of all holds. At the limit of that
		// sum, the message becomes visible, too.
		if doing != "send" {
			return fmt.Errorf("%w: %w", queue.ErrGone, err)
		}
		return backoff.Permanent(fmt.Errorf("%w: %w", queue.ErrContent, err))
	case "InvalidMessageContents":
		return backoff.Permanent(fmt.Errorf("%w: %w", queue.ErrContent, err))
	}
	if b.SenderFault && !client.Throttled(code) {
		return backoff.Permanent(err)
	}
	return err
}

// failure explains the error of a whole call.
func (q *Queue) failure(err error) error {
	switch client.Code(err) {
	case "BatchRequestTooLong":
		err = fmt.Errorf("%w: %w", queue.ErrTooLarge, err)
	case "InvalidMessageContents":
		err = fmt.Errorf("%w: %w", queue.ErrContent, err)
	}
	return client.Explain("queue "+q.url, err,
		client.Final{
			Says:  " does not exist in this account and region: deploy the stack, or correct the queue's URL",
			Codes: []string{"NonExistentQueue", "QueueDoesNotExist", "QueueDeletedRecently", "InvalidAddress"},
		},
		client.Final{Says: " does not accept the request", Codes: []string{"BatchRequestTooLong", "InvalidMessageContents"}},
		client.Final{Says: ": the credentials do not permit this: grant the role the action named here"})
}
