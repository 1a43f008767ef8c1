package sqs

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/queue"
)

// entryFailure interprets the code of a failed entry. The entry's text is for people only.
func entryFailure(doing string, b types.BatchResultErrorEntry) error {
	code := client.Normal(aws.ToString(b.Code))
	err := fmt.Errorf("%s: %s: %s", doing, code, aws.ToString(b.Message))
	switch code {
	case "ReceiptHandleIsInvalid", "MessageNotInflight":
		return fmt.Errorf("%w: %w", queue.ErrGone, err)
	case "InvalidParameterValue":
		// This is AWS's code for a handle whose message is deleted or visible again. Everything
		// else in an entry was checked before it was sent, except the sum of all holds: at its
		// limit the message becomes visible, too.
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

// failure interprets an error of a whole call.
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
		client.Final{Says: " does not take the request", Codes: []string{"BatchRequestTooLong", "InvalidMessageContents"}},
		client.Final{Says: ": the credentials may not do this: grant the role the action named here"})
}
