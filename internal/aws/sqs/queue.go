// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
)

const (
	// attemptTimeout is the time-out of one request.
	attemptTimeout = 3 * time.Second
	// maxParallel is how many requests of one method call run at the same time. So 1,000 messages
	// take seven rounds.
	maxParallel = 16
)

// Queue is an SQS standard queue. A Queue is safe for concurrent use.
type Queue struct {
	api *sdk.Client
	url string
	clk clock.Clock
}

var _ queue.Queue = (*Queue)(nil)

// New returns the queue with the given URL. New switches off the retries of the SDK.
func New(cfg aws.Config, url string) *Queue { return NewFrom(cfg, url, attemptTimeout) }

// NewFrom does what New does, with another time-out of a request. NewFrom is for a caller outside
// AWS, whose network may be slow.
func NewFrom(cfg aws.Config, url string, limit time.Duration) *Queue {
	return &Queue{api: sdk.NewFromConfig(client.Bounded(cfg, limit)), url: url, clk: clock.System{}}
}

// Send sends messages. A message that SQS would refuse gets an error with the reason. Such a
// message is not sent, because the whole batch would fail.
func (q *Queue) Send(ctx context.Context, out []queue.Outgoing) []error {
	errs := make([]error, len(out))
	var good, sizes []int
	for i := range out {
		if err := out[i].Refusal(); err != nil {
			errs[i] = backoff.Permanent(err)
		} else {
			good, sizes = append(good, i), append(sizes, queue.Bytes(out[i].Body, out[i].Attributes))
		}
	}
	q.each(ctx, batches(good, sizes), func(ctx context.Context, batch []int) ([]error, error) {
		in := make([]types.SendMessageBatchRequestEntry, len(batch))
		for n, i := range batch {
			in[n] = types.SendMessageBatchRequestEntry{
				Id: name(n), MessageBody: &out[i].Body, MessageAttributes: attributes(out[i].Attributes),
				DelaySeconds: seconds(out[i].Delay),
			}
			if g := queue.Group(out[i].Attributes); g != "" {
				in[n].MessageGroupId = &g
			}
		}
		res, err := q.api.SendMessageBatch(ctx, &sdk.SendMessageBatchInput{QueueUrl: &q.url, Entries: in})
		if err != nil {
			return nil, err
		}
		return answers("send", len(batch), res.Successful, sentID, res.Failed), nil
	}, errs)
	return queue.Answer(errs)
}

func sentID(e types.SendMessageBatchResultEntry) *string { return e.Id }

// seconds converts a delay or a visibility timeout into whole seconds.
func seconds(d time.Duration) int32 { return int32(queue.WholeSeconds(d) / time.Second) }

// batches divides entries, in order, into batches of at most ten entries and 1 MiB. sizes are the
// sizes of the entries.
func batches(entries, sizes []int) [][]int {
	var out [][]int
	bytes := 0
	for n, i := range entries {
		last := len(out) - 1
		if last < 0 || len(out[last]) == queue.MaxEntries || bytes+sizes[n] > queue.MaxBytes {
			out, bytes, last = append(out, nil), 0, last+1
		}
		out[last] = append(out[last], i)
		bytes += sizes[n]
	}
	return out
}

func attributes(in map[string]queue.Attribute) map[string]types.MessageAttributeValue {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]types.MessageAttributeValue, len(in))
	for name, a := range in {
		v := types.MessageAttributeValue{DataType: aws.String(a.Type)}
		if a.Binary != nil {
			v.BinaryValue = a.Binary
		} else {
			v.StringValue = aws.String(a.String)
		}
		out[name] = v
	}
	return out
}

// name returns the id of an entry within its batch.
func name(n int) *string { return aws.String(strconv.Itoa(n)) }
