package memory

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/queue"
)

// MaxInFlight is how many messages of a standard queue SQS lets be in flight, about.
const MaxInFlight = 120_000

// QueueSettings describe an SQS standard queue.
type QueueSettings struct {
	Name            string        // also the MovedFrom of messages that it gives to DeadLetter
	Visibility      time.Duration // how long a received message stays invisible, 0 for SQS's 30 s
	Retention       time.Duration // counted from Sent, 0 for SQS's 4 days
	MaxReceiveCount int           // receives before a message is moved to DeadLetter, 0 for no redrive policy
	DeadLetter      *Queue        // nil for no redrive policy
	MaxInFlight     int           // 0 for [MaxInFlight]; at the limit receivers wait

	// Deliver, where set, is asked once per message sent what a standard queue may do to it:
	// deliver it late, out of order, or twice (a second copy with the same id and a receipt handle
	// of its own). It is called under the queue's lock.
	Deliver func() (late time.Duration, twice bool)
}

// Queue is a standard queue that delivers once per visibility, in the order in which messages
// became visible. A message is one of: delayed, visible, in flight. All methods are safe for
// concurrent use.
type Queue struct {
	clk    clock.Clock
	set    QueueSettings
	origin time.Time // times below count from it, on the clock's monotonic scale

	mu       sync.Mutex
	seq      uint64
	messages map[uint64]*message
	visible  fifo
	timeline timeline // delayed and in flight, by when they become visible
	inFlight int
	delayed  int
	waiters  []*waiter // who waits for messages, the next to be served first
}

// message is one message of a queue. at and received count from the queue's origin.
type message struct {
	queue.Message
	seq      uint64
	bytes    int
	state    state
	expires  time.Duration // when retention ends
	at       time.Duration // when it becomes visible, while delayed or in flight
	received time.Duration // the last receive: visibility ends twelve hours later
	slot     int           // its place in the timeline
}

type state byte

const (
	visible state = iota
	delayed
	inFlight
	gone // deleted, expired or moved: the visible list drops it when it gets there
)

var _ queue.Queue = (*Queue)(nil)

// NewQueue returns an empty queue.
func NewQueue(clk clock.Clock, set QueueSettings) *Queue {
	if set.Visibility == 0 {
		set.Visibility = 30 * time.Second
	}
	if set.Retention == 0 {
		set.Retention = 4 * 24 * time.Hour
	}
	if set.MaxInFlight == 0 {
		set.MaxInFlight = MaxInFlight
	}
	return &Queue{clk: clk, set: set, origin: clk.Now(), messages: map[uint64]*message{}}
}

// Name is the name given in the settings.
func (q *Queue) Name() string { return q.set.Name }

func (q *Queue) now() time.Duration { return q.clk.Now().Sub(q.origin) }

// Send puts messages into the queue, each unless SQS would refuse it.
func (q *Queue) Send(ctx context.Context, out []queue.Outgoing) []error {
	if err := ctx.Err(); err != nil {
		return queue.FailAll(len(out), fmt.Errorf("send: %w", err))
	}
	clockNow := q.clk.Now()
	now, sent := clockNow.Sub(q.origin), clockNow.UTC().Truncate(time.Millisecond)
	errs := make([]error, len(out))
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range out {
		o := &out[i]
		if errs[i] = o.Refusal(); errs[i] != nil {
			continue
		}
		bytes := queue.Bytes(o.Body, o.Attributes)
		q.seq++
		msg := queue.Message{
			ID: q.set.Name + "-" + strconv.FormatUint(q.seq, 10), Body: o.Body, Attributes: maps.Clone(o.Attributes),
			Sent: sent,
		}
		late, twice := time.Duration(0), false
		if q.set.Deliver != nil {
			late, twice = q.set.Deliver()
		}
		q.enter(q.add(msg, bytes), now, o.Delay+late)
		if twice {
			q.seq++
			q.enter(q.add(msg, bytes), now, o.Delay)
		}
	}
	q.offer(now)
	return queue.Answer(errs)
}

// enter makes a message visible, now or after the delay.
func (q *Queue) enter(m *message, now, delay time.Duration) {
	if delay <= 0 {
		q.visible.push(m)
		return
	}
	m.state, m.at = delayed, now+delay
	q.delayed++
	q.timeline.add(m)
}

// add makes a message of the queue's, in no list yet.
func (q *Queue) add(msg queue.Message, bytes int) *message {
	m := &message{Message: msg, seq: q.seq, bytes: bytes, expires: msg.Sent.Sub(q.origin) + q.set.Retention}
	q.messages[m.seq] = m
	return m
}

// Hold makes messages in flight invisible for d from now. Asking for more than twelve hours since
// the receive is an error that changes nothing, as in SQS.
func (q *Queue) Hold(ctx context.Context, receipts []string, d time.Duration) []error {
	if err := ctx.Err(); err != nil {
		return queue.FailAll(len(receipts), fmt.Errorf("hold: %w", err))
	}
	now := q.now()
	errs := make([]error, len(receipts))
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, receipt := range receipts {
		errs[i] = q.hold(receipt, now, d)
	}
	q.offer(now)
	return queue.Answer(errs)
}

func (q *Queue) hold(receipt string, now, d time.Duration) error {
	m := q.find(receipt)
	if m == nil || m.state != inFlight || m.at <= now {
		return queue.ErrGone
	}
	if err := queue.HoldRefusal(d, now-m.received); err != nil {
		return err
	}
	if d == 0 {
		q.release(m)
		return nil
	}
	m.at = now + d
	q.timeline.moved(m)
	return nil
}

// Delete deletes the messages whose latest receipt is given, also one whose visibility has lapsed
// since. A stale receipt does nothing.
func (q *Queue) Delete(ctx context.Context, receipts []string) []error {
	if err := ctx.Err(); err != nil {
		return queue.FailAll(len(receipts), fmt.Errorf("delete: %w", err))
	}
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, receipt := range receipts {
		if m := q.find(receipt); m != nil {
			q.remove(m)
		}
	}
	q.offer(now)
	return nil
}

// find returns the message if the receipt is its latest.
func (q *Queue) find(receipt string) *message {
	seq, _, _ := strings.Cut(receipt, ".")
	n, err := strconv.ParseUint(seq, 36, 64)
	if err != nil {
		return nil
	}
	if m := q.messages[n]; m != nil && m.Receipt == receipt {
		return m
	}
	return nil
}

func newReceipt(seq uint64, count int) string {
	var b [32]byte
	return string(strconv.AppendInt(append(strconv.AppendUint(b[:0], seq, 36), '.'), int64(count), 36))
}

// remove takes a message out of the queue. One in the visible list is left there as gone.
func (q *Queue) remove(m *message) {
	q.unschedule(m)
	if m.state == visible {
		q.visible.gone++
	}
	m.state = gone
	delete(q.messages, m.seq)
}

// release makes a delayed message, or one in flight, visible.
func (q *Queue) release(m *message) {
	q.unschedule(m)
	m.state = visible
	q.visible.push(m)
}

func (q *Queue) unschedule(m *message) {
	switch m.state {
	case delayed:
		q.delayed--
	case inFlight:
		q.inFlight--
	default:
		return
	}
	q.timeline.take(m)
}

// QueueCounts are what SQS calls ApproximateNumberOfMessages, NotVisible and Delayed. Here they are
// exact.
type QueueCounts struct{ Visible, InFlight, Delayed int }

// Total is every message that the queue has.
func (c QueueCounts) Total() int { return c.Visible + c.InFlight + c.Delayed }

// Counts counts the messages at this moment.
func (q *Queue) Counts() QueueCounts {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lapse(now)
	q.expire(now)
	return QueueCounts{Visible: q.visible.len(), InFlight: q.inFlight, Delayed: q.delayed}
}
