// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/seam/queue"
)

// chunk is how many messages each of several waiting pollers gets at a time: as many as one
// ReceiveMessage returns.
const chunk = queue.MaxEntries

// waiter is a call that waits for messages. The queue's lock protects its fields.
type waiter struct {
	emulation.Batch
	armed time.Duration // when the timer of this call will wake it
	wake  chan struct{}
}

// Receive works like ReceiveMessage of SQS. Receive returns up to limit messages, and waits for the
// first message at most for the time wait. The answer may be empty.
func (q *Queue) Receive(ctx context.Context, limit int, wait time.Duration) ([]queue.Message, error) {
	return q.receive(ctx, limit, wait, 0)
}

// Gather collects one batch of an event source mapping. Gather waits for the first message until
// ctx ends, and then collects up to limit messages. Gather returns when the window has passed since
// the first message, or when the next message would exceed [emulation.MaxBatchBytes]. The
// visibility timeout of each message counts from its own receive. If ctx ends first, Gather makes
// the messages visible again.
func (q *Queue) Gather(ctx context.Context, limit int, window time.Duration) ([]queue.Message, error) {
	return q.receive(ctx, limit, emulation.Never, window)
}

func (q *Queue) receive(ctx context.Context, limit int, wait, window time.Duration) ([]queue.Message, error) {
	if limit < 1 {
		return nil, fmt.Errorf("receive %d messages: ask for at least one", limit)
	}
	defer q.keep.Flush()
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	giveUp := emulation.Never
	if wait != emulation.Never {
		giveUp = now + wait
	}
	w := &waiter{Batch: emulation.NewBatch(limit, window), wake: make(chan struct{}, 1)}
	q.waiters = append(q.waiters, w)
	for {
		w.armed = now // the call is awake
		q.offer(now)
		switch {
		case w.Full:
			return w.Messages, nil
		case ctx.Err() != nil:
			q.leave(w)
			w.GiveBack(q.q, now)
			q.offer(now)
			return nil, fmt.Errorf("receive: %w", context.Cause(ctx))
		case now >= min(w.End, giveUp):
			q.leave(w)
			q.rearm()
			return w.Messages, nil
		}
		w.armed = min(w.End, giveUp)
		if at, ok := q.q.Next(); ok {
			w.armed = min(w.armed, at)
		}
		d := w.armed - now
		q.mu.Unlock()
		q.sleep(ctx, w, d)
		q.mu.Lock()
		now = q.now()
	}
}

// sleep waits until w is woken, until d has passed or until ctx ends.
func (q *Queue) sleep(ctx context.Context, w *waiter, d time.Duration) {
	if d < emulation.Never/2 {
		timed, cancel := q.clk.Deadline(ctx, d)
		defer cancel()
		ctx = timed
	}
	select {
	case <-ctx.Done():
	case <-w.wake:
	}
}

// offer makes messages visible whose time has come, and gives visible messages to the waiters in
// turn. The method makes sure that a waiter wakes when the next message becomes visible.
func (q *Queue) offer(now time.Duration) {
	q.q.Advance(now)
	for len(q.waiters) > 0 && q.q.Front(now) != nil {
		w := q.waiters[0]
		copy(q.waiters, q.waiters[1:])
		q.waiters[len(q.waiters)-1] = w
		w.fill(q.q, now)
		if w.Full {
			q.leave(w)
		}
	}
	q.rearm()
}

// fill gives a chunk of messages to a waiter. If the waiter has no window, the waiter gets as many
// messages as fit into its batch.
func (w *waiter) fill(q *emulation.Queue, now time.Duration) {
	n, first := chunk, len(w.Messages) == 0
	if w.Window == 0 {
		n = 0
	}
	w.Fill(q, now, n)
	w.Full = w.Full || w.Window == 0
	if w.Full || first { // the first message determines the end of the batch, so the waiter must set its timer
		w.nudge()
	}
}

func (q *Queue) leave(w *waiter) {
	q.waiters = slices.DeleteFunc(q.waiters, func(other *waiter) bool { return other == w })
}

// rearm wakes one waiter if all waiters would still sleep when the next message becomes visible.
func (q *Queue) rearm() {
	at, ok := q.q.Next()
	if !ok || len(q.waiters) == 0 || slices.ContainsFunc(q.waiters, func(w *waiter) bool { return w.armed <= at }) {
		return
	}
	q.waiters[0].nudge()
}

func (w *waiter) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
