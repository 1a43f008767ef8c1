// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/simulation/price"
)

// received counts the cost of receiving a batch, and the number of documents in the batch.
func (w *World) received(batch []queue.Message, window time.Duration) {
	docs := map[int]bool{}
	bytes := 0
	for i := range batch {
		bytes += len(batch[i].Body)
		if batch[i].ReceiveCount == 1 {
			docs[parse(batch[i].Body).Doc] = true
		}
	}
	full := (len(batch) + queue.MaxEntries - 1) / queue.MaxEntries
	billed := max(float64(full), price.QueueRequests(bytes))
	eager := eagerPolls(batch, w.clk.Now().Add(-window))
	w.Meter.count(func(c *Counts, u *price.Usage) {
		c.Received += len(batch)
		c.Receives += full
		c.EagerPolls += eager
		u.QueueRequests += billed
		c.Admissions += len(docs)
	})
}

// eagerPolls returns how many ReceiveMessage calls a batch takes at most. Each call follows the
// previous one at once, and long polling answers as soon as there is one message. The smallest
// possible number is one call for each ten messages.
func eagerPolls(batch []queue.Message, began time.Time) int {
	arrivals := make([]time.Time, len(batch))
	for i := range batch {
		arrivals[i] = batch[i].Sent
		if batch[i].ReceiveCount > 1 || arrivals[i].Before(began) {
			arrivals[i] = began
		}
	}
	slices.SortFunc(arrivals, time.Time.Compare)
	calls, last := 0, began
	for i := 0; i < len(arrivals); calls++ {
		answer := last.Add(pollLatency)
		if arrivals[i].After(answer) {
			answer = arrivals[i]
		}
		for n := 0; n < queue.MaxEntries && i < len(arrivals) && !arrivals[i].After(answer); n++ {
			i++
		}
		last = answer
	}
	return calls
}

// queueFor returns the queue as an invocation sees it. Batch calls have ten entries, run in
// parallel with a limit, and are billed.
func (w *World) queueFor(v *fault.Invocation) queue.Queue {
	return calls{v.Queue(billedQueue{w.Queue, w.Meter})}
}

// calls makes batch calls in parallel.
type calls struct{ queue.Queue }

func (c calls) Hold(ctx context.Context, receipts []string, d time.Duration) []error {
	return inTens(receipts, func(part []string) []error { return c.Queue.Hold(ctx, part, d) })
}

func (c calls) Delete(ctx context.Context, receipts []string) []error {
	return inTens(receipts, func(part []string) []error { return c.Queue.Delete(ctx, part) })
}

func inTens(in []string, f func(part []string) []error) []error {
	parts := slices.Collect(slices.Chunk(in, queue.MaxEntries))
	all := make([]error, 0, len(in))
	for i, errs := range fanout.Map(nil, callParallel, parts, f) {
		for j := range parts[i] {
			all = append(all, queue.ErrorAt(errs, j))
		}
	}
	return queue.Answer(all)
}

type billedQueue struct {
	queue.Queue
	meter *Meter
}

func (b billedQueue) Hold(ctx context.Context, receipts []string, d time.Duration) []error {
	b.meter.count(func(c *Counts, u *price.Usage) { c.Holds++; u.QueueRequests++ })
	return b.Queue.Hold(ctx, receipts, d)
}

func (b billedQueue) Delete(ctx context.Context, receipts []string) []error {
	b.meter.count(func(c *Counts, u *price.Usage) { c.Deletes++; u.QueueRequests++ })
	return b.Queue.Delete(ctx, receipts)
}
