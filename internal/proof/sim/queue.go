package sim

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/queue"
)

// sqsQueue is an SQS standard queue at its least helpful: it delivers late, out of order, twice,
// again after a deletion and although a message is invisible; it honours old receipt handles or
// not. A message is one of visible, in flight, delayed, gone.
type sqsQueue struct {
	w          *World
	name       string
	dead       *sqsQueue // nil for no redrive policy
	most       int       // receives before a message moves to dead
	visibility time.Duration
	retention  time.Duration
	cap        int // messages in flight at most

	messages map[int]*message
	made     int
	visible  []*message
	head     int
	count    [4]int // by place
	notify   func() // tells the mapping that there is something to receive

	sent, deleted, moved, expired int
}

type place byte

const (
	visible place = iota
	inFlight
	delayed
	gone
)

// message is one message of a queue, with what the oracles know of it.
type message struct {
	queue.Message
	seq      int
	bytes    int
	place    place
	listed   bool // it stands in the visible list, perhaps although it is elsewhere by now
	at       time.Duration
	received time.Duration
	expires  time.Duration
	timer    uint64
	events   []truth
}

func newQueue(w *World, name string, visibility, retention time.Duration) *sqsQueue {
	return &sqsQueue{
		w: w, name: name, visibility: visibility, retention: retention, cap: 120_000,
		messages: map[int]*message{}, notify: func() {},
	}
}

// send is one entry of SendMessage, as the service sees it.
func (q *sqsQueue) send(o queue.Outgoing) error {
	if err := o.Refusal(); err != nil {
		return err
	}
	bytes := queue.Bytes(o.Body, o.Attributes)
	q.sent++
	m := queue.Message{
		ID: q.name + "-" + strconv.Itoa(q.sent), Body: o.Body, Attributes: maps.Clone(o.Attributes),
		Sent: epoch.Add(q.w.now).Truncate(time.Millisecond),
	}
	r := &q.w.rates
	delay := o.Delay
	if q.w.dice.chance(r.Reorder) {
		delay += q.w.dice.upTo(r.ReorderBy)
	}
	q.enter(m, bytes, delay)
	if q.w.dice.chance(r.DeliverTwice) {
		q.enter(m, bytes, o.Delay+q.w.dice.upTo(r.ReorderBy))
	}
	return nil
}

// enter adds a message, or a further copy of one, which has the same id and receipt handles of its
// own.
func (q *sqsQueue) enter(m queue.Message, bytes int, delay time.Duration) {
	q.made++
	e := &message{Message: m, seq: q.made, bytes: bytes, place: gone, expires: m.Sent.Sub(epoch) + q.retention}
	q.messages[e.seq] = e
	q.count[gone]++ // nowhere yet
	q.w.oracle.arrived(q, e)
	if delay > 0 {
		q.put(e, delayed, q.w.now+delay)
		q.w.oracle.lastDue = max(q.w.oracle.lastDue, q.w.now+delay)
	} else {
		q.put(e, visible, 0)
	}
}

// put moves a message to a place; one that is delayed or in flight becomes visible at a moment.
func (q *sqsQueue) put(m *message, to place, at time.Duration) {
	q.count[m.place]--
	q.count[to]++
	m.place, m.at = to, at
	m.timer++
	switch to {
	case visible:
		if !m.listed {
			m.listed = true
			q.visible = append(q.visible, m)
		}
		q.notify()
	case inFlight, delayed:
		timer := m.timer
		q.w.after(at-q.w.now, func() {
			if m.timer == timer {
				q.put(m, visible, 0)
			}
		})
	case gone:
		delete(q.messages, m.seq)
	}
}

// take is one ReceiveMessage: up to limit messages.
func (q *sqsQueue) take(limit int) []*message {
	var out []*message
	room := q.cap
	if n := q.w.rates.InFlight; n > 0 {
		room = n
	}
	for len(out) < limit && q.count[inFlight] < room {
		m := q.first()
		if m == nil {
			break
		}
		m.ReceiveCount++
		m.Receipt = strconv.Itoa(m.seq) + "." + strconv.Itoa(m.ReceiveCount)
		if m.FirstReceived.IsZero() {
			m.FirstReceived = epoch.Add(q.w.now).Truncate(time.Millisecond)
		}
		m.received = q.w.now
		if q.dead != nil {
			q.w.worst.Receives = max(q.w.worst.Receives, m.ReceiveCount)
		}
		again := q.w.now + q.visibility
		if q.w.dice.chance(q.w.rates.EarlyAgain) {
			again = q.w.now + q.w.dice.upTo(q.visibility)
		}
		q.put(m, inFlight, again)
		out = append(out, m)
	}
	return out
}

// first takes a visible message off the list: now and then not the one that has waited longest.
// Messages that are past their retention vanish here, and those received too often move to the
// dead-letter queue.
func (q *sqsQueue) first() *message {
	for q.head < len(q.visible) {
		if n := len(q.visible) - q.head; n > 1 && q.w.dice.chance(q.w.rates.Reorder) {
			i := q.head + q.w.dice.IntN(n)
			q.visible[q.head], q.visible[i] = q.visible[i], q.visible[q.head]
		}
		m := q.visible[q.head]
		q.visible[q.head] = nil
		q.head++
		m.listed = false
		switch {
		case m.place != visible:
		case q.w.now >= m.expires:
			q.expired++
			q.leave(m, lostByQueue)
		case q.dead != nil && m.ReceiveCount >= q.receives():
			q.moved++
			q.w.worst.Moved++
			q.move(m)
		default:
			return m
		}
	}
	q.visible, q.head = q.visible[:0], 0
	return nil
}

// receives is how often a message is received before it moves.
func (q *sqsQueue) receives() int {
	if n := q.w.rates.Receives; n > 0 {
		return n
	}
	return q.most
}

// move is the redrive policy: the message keeps its id and when it was sent, and its receives are
// counted anew.
func (q *sqsQueue) move(m *message) {
	copied := m.Message
	copied.Receipt, copied.ReceiveCount, copied.FirstReceived, copied.MovedFrom = "", 0, time.Time{}, q.name
	q.dead.enter(copied, m.bytes, 0)
	q.leave(m, movedToDead)
}

func (q *sqsQueue) leave(m *message, why departure) {
	q.put(m, gone, 0)
	q.w.oracle.left(q, m, why)
}

// find returns the message of a receipt handle, if it is the latest or the service honours an old
// one.
func (q *sqsQueue) find(receipt string) *message {
	seq, _, _ := strings.Cut(receipt, ".")
	n, err := strconv.Atoi(seq)
	if err != nil {
		return nil
	}
	m := q.messages[n]
	if m == nil || m.Receipt != receipt && !q.w.dice.chance(q.w.rates.StaleReceipt) {
		return nil
	}
	return m
}

// hold is one entry of ChangeMessageVisibility.
func (q *sqsQueue) hold(receipt string, d time.Duration) error {
	m := q.find(receipt)
	if m == nil || m.place != inFlight {
		return queue.ErrGone
	}
	if err := queue.HoldRefusal(d, q.w.now-m.received); err != nil {
		return err
	}
	if d == 0 {
		q.put(m, visible, 0)
	} else {
		q.put(m, inFlight, q.w.now+d)
	}
	return nil
}

// remove is one entry of DeleteMessage.
func (q *sqsQueue) remove(receipt string) {
	m := q.find(receipt)
	if m == nil || m.place == gone {
		return
	}
	q.deleted++
	back, bytes := m.Message, m.bytes
	q.leave(m, wasDeleted)
	if q.w.dice.chance(q.w.rates.Undelete) {
		q.enter(back, bytes, q.w.dice.upTo(30*time.Second))
	}
}

// total is every message that the queue has.
func (q *sqsQueue) total() int { return q.count[visible] + q.count[inFlight] + q.count[delayed] }

var _ queue.Queue = (*sqsQueue)(nil)

// Send, Hold and Delete are one batch call each, of which every entry may fail alone.
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
		q.remove(r)
		return nil
	})
}

func entries[T any](q *sqsQueue, bytes int, in []T, do func(T) error) []error {
	q.w.counts.queued(bytes)
	errs := make([]error, len(in))
	for i := range in {
		if q.w.dice.chance(q.w.rates.EntryFails) {
			errs[i] = fault.ErrInjected
		} else {
			errs[i] = do(in[i])
		}
	}
	return queue.Answer(errs)
}
