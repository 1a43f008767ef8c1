package sqs

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/queue"
)

// Hold makes messages invisible for d from now, in whole seconds, rounded up.
func (q *Queue) Hold(ctx context.Context, receipts []string, d time.Duration) []error {
	if d < 0 || d > queue.MaxHold {
		errs := make([]error, len(receipts))
		for i := range errs {
			errs[i] = backoff.Permanent(fmt.Errorf("hold: %s is not between 0 and %s", d, queue.MaxHold))
		}
		return compact(errs)
	}
	seconds := int32((d + time.Second - 1) / time.Second)
	return q.receipts(ctx, receipts, func(ctx context.Context, batch []string) ([]failed, error) {
		in := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(batch))
		for n := range batch {
			in[n] = types.ChangeMessageVisibilityBatchRequestEntry{
				Id: name(n), ReceiptHandle: &batch[n],
				VisibilityTimeout: seconds,
			}
		}
		res, err := q.api.ChangeMessageVisibilityBatch(ctx,
			&sdk.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url, Entries: in})
		if err != nil {
			return nil, err
		}
		ok := make([]*string, len(res.Successful))
		for i := range res.Successful {
			ok[i] = res.Successful[i].Id
		}
		return answers("hold", len(batch), ok, res.Failed), nil
	})
}

// Delete deletes messages by their receipt handles.
func (q *Queue) Delete(ctx context.Context, receipts []string) []error {
	errs := q.receipts(ctx, receipts, func(ctx context.Context, batch []string) ([]failed, error) {
		in := make([]types.DeleteMessageBatchRequestEntry, len(batch))
		for n := range batch {
			in[n] = types.DeleteMessageBatchRequestEntry{Id: name(n), ReceiptHandle: &batch[n]}
		}
		res, err := q.api.DeleteMessageBatch(ctx, &sdk.DeleteMessageBatchInput{QueueUrl: &q.url, Entries: in})
		if err != nil {
			return nil, err
		}
		ok := make([]*string, len(res.Successful))
		for i := range res.Successful {
			ok[i] = res.Successful[i].Id
		}
		return answers("delete", len(batch), ok, res.Failed), nil
	})
	for i, err := range errs {
		if errors.Is(err, queue.ErrGone) {
			errs[i] = nil // deleted before, or redelivered: a duplicate then
		}
	}
	return compact(errs)
}

// receipts runs a call over distinct handles and gives each handle's answer to every place where it
// was asked for.
func (q *Queue) receipts(ctx context.Context, receipts []string,
	call func(context.Context, []string) ([]failed, error),
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
	q.each(ctx, batches(entries, nil), func(ctx context.Context, batch []int) ([]failed, error) {
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
	return compact(errs)
}
