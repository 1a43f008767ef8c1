// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/seam/queue"
)

// sqsQueue runs an [emulation.Queue] with the failures that SQS allows. The queue delivers messages
// late, out of order, twice, after a deletion, and while they are invisible. The queue may accept
// old receipt handles or not.
type sqsQueue struct {
	*emulation.Queue
	w       *World
	sink    string        // the sink to which the queue belongs
	dead    *sqsQueue     // the dead-letter queue; nil for no redrive policy
	armed   time.Duration // when the queue next checks for messages that become visible
	carried map[*message][]truth
	entered int
	left    int
}

// message is one message of a queue.
type message = emulation.Message

var _ queue.Queue = (*sqsQueue)(nil)

// newQueue returns a queue. If dead is not nil, the queue's redrive policy moves messages to dead.
func newQueue(w *World, sink, name string, dead *sqsQueue, retention time.Duration) *sqsQueue {
	q := &sqsQueue{w: w, sink: sink, dead: dead, carried: map[*message][]truth{}}
	set := emulation.QueueSettings{
		Name: sink + "-" + name, Origin: epoch, Visibility: w.cfg.Queues.Visibility, Retention: retention,
		Hooks: emulation.Hooks{Pick: q.pick, Taken: q.taken, Left: q.leave},
	}
	if dead != nil {
		set.Dead = func(m queue.Message) { dead.enter(m, 0) }
	}
	q.Queue = emulation.NewQueue(set)
	q.limit()
	w.queues = append(w.queues, q)
	return q
}

// limit sets the limits that the rates may lower.
func (q *sqsQueue) limit() {
	q.MaxInFlight = cmp.Or(q.w.rates.InFlight, emulation.MaxInFlight)
	q.MaxReceiveCount = cmp.Or(q.w.rates.Receives, q.w.cfg.Retry.MaxReceiveCount())
}

// pick returns which message is delivered next. Sometimes this is not the message that has waited
// longest.
func (q *sqsQueue) pick(n int) int {
	if !q.w.strikes("message out of order", q.w.rates.Reorder) {
		return 0
	}
	return q.w.dice.IntN(n)
}

// taken is called for each delivered message. Sometimes it delivers the message again although the
// message is invisible.
func (q *sqsQueue) taken(m *message) {
	if q.dead != nil {
		q.w.worst.Receives = max(q.w.worst.Receives, m.ReceiveCount)
	}
	if q.w.strikes("message again although invisible", q.w.rates.EarlyAgain) {
		q.Reappear(m, q.w.now+q.w.dice.upTo(q.Visibility))
	}
	q.w.watchMessage(q, m, Step{What: Received, Receipt: q.named(m.Receipt)})
	q.arm()
}

func (q *sqsQueue) leave(m *message, why emulation.Departure) {
	q.left++
	if why == emulation.Moved {
		q.w.worst.Moved++
	}
	q.w.watchMessage(q, m, Step{What: Left, Why: why})
	q.w.oracle.left(q, m, why)
	delete(q.carried, m)
}

// arm plans a check at the time when the next message becomes visible.
func (q *sqsQueue) arm() {
	at, ok := q.Next()
	if !ok || q.armed > q.w.now && q.armed <= at {
		return
	}
	q.armed = at
	q.w.after(at-q.w.now, func() {
		q.Advance(q.w.now)
		q.arm()
	})
}

// send handles one entry of SendMessage.
func (q *sqsQueue) send(o queue.Outgoing) error {
	m, err := q.New(q.w.now, &o)
	if err != nil {
		return err
	}
	r, delay := &q.w.rates, o.Delay
	if q.w.strikes("message late", r.Reorder) {
		delay += q.w.dice.upTo(r.ReorderBy)
	}
	q.enter(m, delay)
	if q.w.strikes("message twice", r.DeliverTwice) {
		q.enter(m, o.Delay+q.w.dice.upTo(r.ReorderBy))
	}
	return nil
}

// enter adds a message, or another copy of a message.
func (q *sqsQueue) enter(msg queue.Message, delay time.Duration) {
	q.entered++
	m := q.Enter(q.w.now, msg, delay)
	q.carried[m] = q.w.oracle.carries(q, msg)
	q.w.oracle.arrived(q, m)
	q.w.watchMessage(q, m, Step{What: Arrived})
	if delay > 0 {
		q.w.oracle.waits(delay)
		q.arm()
	}
}

// find returns the message of a receipt handle. find accepts the latest handle, and sometimes an
// old one.
func (q *sqsQueue) find(receipt string) *message {
	m, latest := q.Find(receipt)
	if m == nil || !latest && !q.w.strikes("old receipt honoured", q.w.rates.StaleReceipt) {
		return nil
	}
	return m
}

// hold handles one entry of ChangeMessageVisibility.
func (q *sqsQueue) hold(receipt string, d time.Duration) error {
	err := q.Queue.Hold(q.w.now, q.find(receipt), d)
	q.arm()
	return err
}

// remove handles one entry of DeleteMessage.
func (q *sqsQueue) remove(receipt string) error {
	m := q.find(receipt)
	if m == nil {
		return nil
	}
	q.Queue.Delete(m)
	if q.w.strikes("message again although deleted", q.w.rates.Undelete) {
		q.enter(m.Message, q.w.dice.upTo(30*time.Second))
	}
	return nil
}

// QueueName returns the queue's name, for the failures of calls.
func (q *sqsQueue) QueueName() string { return q.Name }

// total returns the number of messages in the queue.
func (q *sqsQueue) total() int { return q.Counts().Total() }

// Send, Hold and Delete are each one batch call. Every entry of the batch may fail alone.
func (q *sqsQueue) Send(_ context.Context, out []queue.Outgoing) []error {
	bytes := 0
	for _, o := range out {
		bytes += queue.Bytes(o.Body, o.Attributes)
	}
	return entries(q, bytes, out, q.send)
}

func (q *sqsQueue) Hold(_ context.Context, receipts []string, d time.Duration) []error {
	return entries(q, 0, receipts, func(r string) error { return q.hold(r, d) })
}

func (q *sqsQueue) Delete(_ context.Context, receipts []string) []error {
	return entries(q, 0, receipts, func(r string) error {
		q.w.watch(nil, Step{What: Deletes, Receipt: q.named(r)})
		return q.remove(r)
	})
}

func entries[T any](q *sqsQueue, bytes int, in []T, do func(T) error) []error {
	q.w.counts.queued(bytes)
	errs := make([]error, len(in))
	for i := range in {
		if q.w.strikes("entry failed", q.w.rates.EntryFails) {
			errs[i] = fault.ErrInjected
		} else {
			errs[i] = do(in[i])
		}
	}
	return queue.Answer(errs)
}
