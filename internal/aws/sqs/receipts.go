// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"context"
	"errors"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullhq/lull/internal/seam/queue"
)

// Hold makes messages invisible for d from now. d is rounded up to whole seconds.
func (q *Queue) Hold(ctx context.Context, receipts []string, d time.Duration) []error {
	if err := queue.HoldRefusal(d, 0); err != nil {
		return queue.FailAll(len(receipts), err)
	}
	return q.receipts(ctx, receipts, func(ctx context.Context, batch []string) ([]error, error) {
		in := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(batch))
		for n := range batch {
			in[n] = types.ChangeMessageVisibilityBatchRequestEntry{
				Id: name(n), ReceiptHandle: &batch[n], VisibilityTimeout: seconds(d),
			}
		}
		res, err := q.api.ChangeMessageVisibilityBatch(ctx,
			&sdk.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url, Entries: in})
		if err != nil {
			return nil, err
		}
		return answers("hold", len(batch), res.Successful, heldID, res.Failed), nil
	})
}

func heldID(e types.ChangeMessageVisibilityBatchResultEntry) *string { return e.Id }

func deletedID(e types.DeleteMessageBatchResultEntry) *string { return e.Id }

// Delete deletes messages by their receipt handles.
func (q *Queue) Delete(ctx context.Context, receipts []string) []error {
	errs := q.receipts(ctx, receipts, func(ctx context.Context, batch []string) ([]error, error) {
		in := make([]types.DeleteMessageBatchRequestEntry, len(batch))
		for n := range batch {
			in[n] = types.DeleteMessageBatchRequestEntry{Id: name(n), ReceiptHandle: &batch[n]}
		}
		res, err := q.api.DeleteMessageBatch(ctx, &sdk.DeleteMessageBatchInput{QueueUrl: &q.url, Entries: in})
		if err != nil {
			return nil, err
		}
		return answers("delete", len(batch), res.Successful, deletedID, res.Failed), nil
	})
	for i, err := range errs {
		if errors.Is(err, queue.ErrGone) {
			errs[i] = nil // the message is already deleted, or will be received again as a duplicate
		}
	}
	return queue.Answer(errs)
}

// receipts runs a call for distinct handles. If a handle occurs several times, each occurrence gets
// the same answer.
func (q *Queue) receipts(ctx context.Context, receipts []string,
	call func(context.Context, []string) ([]error, error),
) []error {
	place := make(map[string]int, len(receipts))
	var unique []string
	var entries []int
	for _, r := range receipts {
		if _, seen := place[r]; !seen {
			place[r] = len(unique)
			entries, unique = append(entries, len(unique)), append(unique, r)
		}
	}
	answer := make([]error, len(unique))
	batches := slices.Collect(slices.Chunk(entries, queue.MaxEntries))
	q.each(ctx, batches, func(ctx context.Context, batch []int) ([]error, error) {
		handles := make([]string, len(batch))
		for n, i := range batch {
			handles[n] = unique[i]
		}
		return call(ctx, handles)
	}, answer)
	errs := make([]error, len(receipts))
	for i, r := range receipts {
		errs[i] = answer[place[r]]
	}
	return queue.Answer(errs)
}
