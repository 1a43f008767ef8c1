package memory

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/lullhq/lull/internal/queue"
)

// Limits of one batch.
const (
	// MaxBatchBytes is where the event source mapping closes a batch: the payload limit of an
	// invocation.
	MaxBatchBytes = 6 << 20
	// recordBytes is about what the envelope of one record adds to its body: receipt handle,
	// attributes, names.
	recordBytes = 700
	// chunk is how many messages one of several waiting pollers gets at a time, as one
	// ReceiveMessage would.
	chunk = queue.MaxEntries
)

const never = time.Duration(math.MaxInt64)

// waiter is one call that waits for messages. Its fields belong to the queue's mutex.
type waiter struct {
	max    int
	window time.Duration
	batch  []queue.Message
	taken  []*message
	bytes  int
	end    time.Duration // when the window closes, never before the first message
	armed  time.Duration // when it looks again by itself
	full   bool
	wake   chan struct{}
}

// Receive is ReceiveMessage: up to limit messages, waiting up to wait for the first. No message is
// no error.
func (q *Queue) Receive(ctx context.Context, limit int, wait time.Duration) ([]queue.Message, error) {
	return q.receive(ctx, limit, wait, 0)
}

// Gather is one batch of an event source mapping: it waits for the first message as long as ctx
// lives, then gathers up to limit messages, until the window has passed since the first or the next
// one would exceed [MaxBatchBytes]. Visibility counts from when each message was taken, before the
// window. If ctx ends while it gathers, the messages are visible again.
func (q *Queue) Gather(ctx context.Context, limit int, window time.Duration) ([]queue.Message, error) {
	return q.receive(ctx, limit, never, window)
}

func (q *Queue) receive(ctx context.Context, limit int, wait, window time.Duration) ([]queue.Message, error) {
	if limit < 1 {
		return nil, fmt.Errorf("receive %d messages: at least one must be asked for", limit)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	giveUp := never
	if wait != never {
		giveUp = now + wait
	}
	w := &waiter{max: limit, window: window, end: never, wake: make(chan struct{}, 1)}
	q.waiters = append(q.waiters, w)
	for {
		w.armed = now // awake
		q.offer(now)
		switch {
		case w.full:
			return w.batch, nil
		case ctx.Err() != nil:
			q.leave(w)
			for i, m := range w.taken {
				if m.state == inFlight && m.Receipt == w.batch[i].Receipt {
					q.release(m)
				}
			}
			q.offer(now)
			return nil, fmt.Errorf("receive: %w", context.Cause(ctx))
		case now >= w.end || len(w.batch) == 0 && now >= giveUp:
			q.leave(w)
			q.rearm()
			return w.batch, nil
		}
		w.armed = w.end
		if len(w.batch) == 0 {
			w.armed = giveUp
		}
		if m := q.timeline.first(); m != nil {
			w.armed = min(w.armed, m.at)
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
	if d < never/2 {
		timed, cancel := q.clk.Deadline(ctx, d)
		defer cancel()
		ctx = timed
	}
	select {
	case <-ctx.Done():
	case <-w.wake:
	}
}

// offer makes visible what is due, hands visible messages to the waiters in turn and sees to it
// that somebody looks when the next message becomes visible.
func (q *Queue) offer(now time.Duration) {
	if len(q.waiters) == 0 {
		return
	}
	q.lapse(now)
	for len(q.waiters) > 0 && q.inFlight < q.set.MaxInFlight && q.presentable(now) != nil {
		w := q.waiters[0]
		q.serve(w, now)
		copy(q.waiters, q.waiters[1:])
		q.waiters[len(q.waiters)-1] = w
		if w.full {
			q.leave(w)
		}
	}
	q.rearm()
}

// serve gives a waiter a chunk.
func (q *Queue) serve(w *waiter, now time.Duration) {
	for n := 0; (n < chunk || w.window == 0) && !w.full && q.inFlight < q.set.MaxInFlight; n++ {
		m := q.presentable(now)
		if m == nil {
			break
		}
		if w.bytes+m.bytes+recordBytes > MaxBatchBytes && len(w.batch) > 0 {
			w.full = true
			break
		}
		q.visible.drop()
		q.take(m, now)
		w.bytes += m.bytes + recordBytes
		w.batch, w.taken = append(w.batch, m.Message), append(w.taken, m)
		if len(w.batch) == 1 {
			w.end = now + w.window
			w.nudge() // its timer stands at something else
		}
		w.full = len(w.batch) == w.max
	}
	if len(w.batch) > 0 && w.window == 0 {
		w.full = true
	}
	if w.full {
		w.nudge()
	}
}

// take puts a visible message in flight.
func (q *Queue) take(m *message, now time.Duration) {
	m.ReceiveCount++
	m.Receipt = newReceipt(m.seq, m.ReceiveCount)
	if m.FirstReceived.IsZero() {
		m.FirstReceived = q.origin.Add(now).UTC().Truncate(time.Millisecond)
	}
	m.state, m.received, m.at = inFlight, now, now+q.set.Visibility
	q.inFlight++
	q.timeline.add(m)
}

// presentable is the first visible message that may be received; expired ones go, and those
// received too often move.
func (q *Queue) presentable(now time.Duration) *message {
	for {
		m := q.visible.first()
		switch {
		case m == nil:
			return nil
		case now >= m.expires:
			q.discard(m)
		case q.set.DeadLetter != nil && q.set.MaxReceiveCount > 0 && m.ReceiveCount >= q.set.MaxReceiveCount:
			q.discard(m)
			q.set.DeadLetter.accept(m, q.set.Name)
		default:
			return m
		}
	}
}

// discard takes the front of the visible list out of the queue.
func (q *Queue) discard(m *message) {
	q.visible.drop()
	m.state = gone
	delete(q.messages, m.seq)
}

// accept takes a message that another queue's redrive policy moves here: it keeps its id and when
// it was sent, and its receives are counted anew.
func (q *Queue) accept(m *message, from string) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seq++
	msg := m.Message
	msg.Receipt, msg.ReceiveCount, msg.FirstReceived, msg.MovedFrom = "", 0, time.Time{}, from
	q.visible.push(q.add(msg, m.bytes))
	q.offer(now)
}

// lapse makes visible what is due.
func (q *Queue) lapse(now time.Duration) {
	for m := q.timeline.first(); m != nil && m.at <= now; m = q.timeline.first() {
		q.release(m)
	}
}

// expire drops what is past its retention at the front.
func (q *Queue) expire(now time.Duration) {
	for m := q.visible.first(); m != nil && now >= m.expires; m = q.visible.first() {
		q.discard(m)
	}
}

func (q *Queue) leave(w *waiter) {
	for i, other := range q.waiters {
		if other == w {
			q.waiters = append(q.waiters[:i], q.waiters[i+1:]...)
			return
		}
	}
}

// rearm wakes one waiter where all of them would sleep past the moment at which the next message
// becomes visible.
func (q *Queue) rearm() {
	m := q.timeline.first()
	if m == nil || len(q.waiters) == 0 {
		return
	}
	for _, w := range q.waiters {
		if w.armed <= m.at {
			return
		}
	}
	q.waiters[0].nudge()
}

func (w *waiter) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
