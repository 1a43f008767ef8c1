// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Handler handles an invocation as bytes. Package aws-lambda-go calls Invoke.
type Handler interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// Handle handles messages of one queue and returns the ids of the messages that must stay in the
// queue. receive and dlq implement it.
type Handle func(ctx context.Context, msgs []queue.Message) (failed []string)

// Queues is the handler of a function behind event source mappings. The type Queues has one Handle
// for each queue, by the name of the queue.
type Queues struct {
	Handles map[string]Handle
	Limit   time.Duration // the time-out of the function in the settings
	Journal *Journal
}

var _ Handler = (*Queues)(nil)

// answerMargin is the time between the end of the handle's context and the end of the invocation.
// In this time, the handle must return, and the answer must be sent.
const answerMargin = 500 * time.Millisecond

// Invoke handles one batch. Invoke fails only if the payload is not an SQS event. Invoke cannot
// report single messages then, so all messages stay.
func (q *Queues) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	defer q.Journal.finish(ctx)
	batch, err := ReadBatch(payload)
	if err != nil {
		q.Journal.Count(metrics.InvalidEvents, 1)
		q.Journal.Log.Error("bad event", "error", err.Error(), "bytes", len(payload))
		return nil, err
	}
	failed := batch.Unread
	if n := len(batch.Unread); n > 0 {
		q.Journal.Count(metrics.InvalidEvents, n)
		q.Journal.Log.Error("records cannot be read", "count", n, "message", batch.Unread[0])
	}
	handle := q.Handles[batch.Queue]
	switch {
	case len(batch.Messages) == 0:
	case handle == nil:
		q.Journal.Count(metrics.ConfigurationErrors, 1)
		q.Journal.Log.Error("bad settings", "error",
			fmt.Sprintf("queue %s is not one of this function's: compare its event source mappings with its environment",
				batch.Queue))
		failed = append(failed, ids(batch.Messages)...)
	default:
		call, cancel := within(ctx, q.Limit, answerMargin)
		defer cancel()
		failed = append(failed, q.isolate(call, handle, batch.Messages)...)
	}
	return Answer(failed), nil
}

// isolate calls handle with the messages. If handle panics, isolate calls it with each half, until
// the messages that cause the panic are alone. Steps before the panic are repeated, which is
// harmless. If there is no time left, the remaining messages stay in the queue.
func (q *Queues) isolate(ctx context.Context, handle Handle, msgs []queue.Message) []string {
	failed, err := guard(q.Journal, func() ([]string, error) { return handle(ctx, msgs), nil })
	if err == nil {
		return idsInBatch(failed, msgs)
	}
	if len(msgs) == 1 || ctx.Err() != nil {
		q.Journal.Log.Error("messages stay after a panic", "count", len(msgs), "message", msgs[0].ID)
		return ids(msgs)
	}
	half := len(msgs) / 2
	return append(q.isolate(ctx, handle, msgs[:half]), q.isolate(ctx, handle, msgs[half:])...)
}

// idsInBatch returns only failed ids that are in the batch, each once. An unknown or empty id would
// make the mapping keep the whole batch.
func idsInBatch(failed []string, msgs []queue.Message) []string {
	mine := make(map[string]bool, len(msgs))
	for i := range msgs {
		mine[msgs[i].ID] = true
	}
	out := make([]string, 0, len(failed))
	for _, id := range failed {
		if mine[id] {
			mine[id] = false
			out = append(out, id)
		}
	}
	return out
}

func ids(msgs []queue.Message) []string {
	out := make([]string, len(msgs))
	for i := range msgs {
		out[i] = msgs[i].ID
	}
	return out
}

// within returns a context for the work of an invocation. The context ends margin before the
// deadline of the invocation, and at the latest limit minus margin from now. So the context also
// ends if the invocation has no deadline.
func within(ctx context.Context, limit, margin time.Duration) (context.Context, context.CancelFunc) {
	end := time.Now().Add(limit)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		end = deadline
	}
	return context.WithDeadline(ctx, end.Add(-margin))
}
