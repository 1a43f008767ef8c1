package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/seam/queue"
)

// chunk is how many messages each of several waiting pollers gets at a time, as with one
// ReceiveMessage.
const chunk = queue.MaxEntries

// waiter is a call that waits for messages. The queue's lock protects its fields.
type waiter struct {
	emulation.Batch
	armed time.Duration // when it wakes by its timer
	wake  chan struct{}
}

// Receive is ReceiveMessage: it returns up to limit messages, and waits up to wait for the first.
// The answer may be empty.
func (q *Queue) Receive(ctx context.Context, limit int, wait time.Duration) ([]queue.Message, error) {
	return q.receive(ctx, limit, wait, 0)
}

// Gather collects one batch of an event source mapping. It waits for the first message until ctx
// ends, and then collects up to limit messages. It ends when the window has passed since the first
// one, or when the next message would exceed [emulation.MaxBatchBytes]. The visibility of each
// message counts from its own receive. If ctx ends before, the messages are visible again.
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
		w.armed = now // awake
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

// sleep waits until the waiter is woken, d has passed or ctx ends.
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

// offer makes messages visible that are due, and gives visible messages to the waiters in turn. It
// makes sure that a waiter is awake when the next message becomes visible.
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

// fill gives a waiter a chunk of messages, or all that fit if it has no window.
func (w *waiter) fill(q *emulation.Queue, now time.Duration) {
	n, first := chunk, len(w.Messages) == 0
	if w.Window == 0 {
		n = 0
	}
	w.Fill(q, now, n)
	w.Full = w.Full || w.Window == 0
	if w.Full || first { // with the first message the end is known, and its timer must be set
		w.nudge()
	}
}

func (q *Queue) leave(w *waiter) {
	q.waiters = slices.DeleteFunc(q.waiters, func(other *waiter) bool { return other == w })
}

// rearm wakes one waiter if all would sleep past the time at which the next message becomes
// visible.
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
