// SPDX-License-Identifier: Apache-2.0

package emulation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
)

// MaxInFlight is about how many messages of a standard queue may be in flight in SQS.
const MaxInFlight = 120_000

// QueueSettings describe an SQS standard queue.
type QueueSettings struct {
	Name            string // the name of the queue; also the MovedFrom of messages that the redrive policy moves
	Origin          time.Time
	Visibility      time.Duration // how long a received message stays invisible
	Retention       time.Duration // how long a message is kept, counted from Sent
	MaxReceiveCount int           // receives before a message moves to Dead, 0 for no redrive policy
	MaxInFlight     int           // while so many messages are in flight, no message is received
	// Dead is called with a message that was received too often. Nil means that there is no redrive
	// policy.
	Dead func(queue.Message)
	Hooks
}

// Hooks lets a driver observe a queue, and decide what SQS leaves open, such as the order of
// messages. Each field may be nil.
type Hooks struct {
	Pick    func(n int) int // returns which of n visible messages is received next; nil means the first
	Visible func()          // called when a message becomes visible
	// called when a message changes its place, with the time at which it becomes visible
	Placed func(m *Message, at time.Time)
	Taken  func(m *Message)                // called when a message is received
	Left   func(m *Message, why Departure) // called when a message leaves the queue
}

// Departure says why a message left a queue.
type Departure byte

// The reasons why a message leaves a queue.
const (
	Deleted Departure = iota
	Moved             // moved to the dead-letter queue
	Expired           // older than the retention period
)

// Queue imitates an SQS standard queue. A Queue delivers a message once per visibility timeout, in
// the order in which messages became visible. All times are durations since the Origin of its
// settings.
type Queue struct {
	QueueSettings
	messages map[uint64]*Message
	sent     uint64 // messages
	made     uint64 // how many messages and additional copies were made
	visible  []*Message
	head     int // index of the first used element of visible
	due      clock.Agenda[*Message]
	count    [4]int // how many messages are in each place, without removed messages
}

// Message is one message of a queue.
type Message struct {
	queue.Message
	Bytes int

	number   uint64
	place    place
	slot     clock.Place // the position of the message in due
	entered  time.Duration
	received time.Duration // when the message was last received
	expires  time.Duration
}

// place says where a message is in the queue. A removed message stays in the list of visible
// messages until it reaches the front.
type place byte

const (
	visible place = iota
	inFlight
	delayed
	gone
)

// NewQueue returns an empty queue.
func NewQueue(set QueueSettings) *Queue {
	return &Queue{QueueSettings: set, messages: map[uint64]*Message{}}
}

// New converts a sent message into the message that SQS stores, or returns the error with which SQS
// refuses it. [Queue.Enter] puts the new message into the queue.
func (q *Queue) New(now time.Duration, o *queue.Outgoing) (queue.Message, error) {
	if err := o.Refusal(); err != nil {
		return queue.Message{}, err
	}
	q.sent++
	return queue.Message{
		ID: q.Name + "-" + strconv.FormatUint(q.sent, 10), Body: o.Body, Attributes: maps.Clone(o.Attributes),
		Sent: q.moment(now),
	}, nil
}

// moment converts a duration since the Origin into a time in the form that SQS reports.
func (q *Queue) moment(now time.Duration) time.Time {
	return q.Origin.Add(now).UTC().Truncate(time.Millisecond)
}

// Enter puts a message into the queue. The message is visible after the delay. If Enter is called
// again with the same message, it adds a copy with the same id and other receipt handles.
func (q *Queue) Enter(now time.Duration, msg queue.Message, delay time.Duration) *Message {
	q.made++
	m := &Message{
		Message: msg, Bytes: queue.Bytes(msg.Body, msg.Attributes), number: q.made, place: gone, entered: now,
		expires: msg.Sent.Sub(q.Origin) + q.Retention,
	}
	q.messages[m.number] = m
	if delay > 0 {
		q.put(m, delayed, now+delay)
	} else {
		q.put(m, visible, 0)
	}
	return m
}

// put moves a message to a place. at is the time when a delayed message or a message in flight
// becomes visible.
func (q *Queue) put(m *Message, to place, at time.Duration) {
	q.count[m.place]--
	q.count[to]++
	m.place = to
	q.due.Remove(&m.slot)
	switch to {
	case visible:
		q.visible = append(q.visible, m)
		if q.Visible != nil {
			q.Visible()
		}
	case inFlight, delayed:
		q.due.Add(at, m, &m.slot)
	case gone:
		delete(q.messages, m.number)
	}
	if q.Placed != nil && to != gone {
		q.Placed(m, q.Origin.Add(at))
	}
}

// Image is the saved form of a message in a queue, which another process can restore.
type Image struct {
	queue.Message
	Number            uint64
	Place             int
	Until             time.Time // when the message becomes visible; meaningless for a visible message
	Entered, Received time.Time
}

// ImageOf returns the image of a message that becomes visible at until.
func (q *Queue) ImageOf(m *Message, until time.Time) Image {
	return Image{
		Message: m.Message, Number: m.number, Place: int(m.place), Until: until,
		Entered: q.Origin.Add(m.entered), Received: q.Origin.Add(m.received),
	}
}

// Restore puts a message that another process has saved into the queue, at the same place.
func (q *Queue) Restore(i Image) error {
	to := place(i.Place)
	if i.Place < int(visible) || i.Place >= int(gone) || q.messages[i.Number] != nil {
		return fmt.Errorf("message %d cannot be at place %d", i.Number, i.Place)
	}
	m := &Message{
		Message: i.Message, Bytes: queue.Bytes(i.Body, i.Attributes), number: i.Number, place: gone,
		entered: i.Entered.Sub(q.Origin), received: i.Received.Sub(q.Origin),
		expires: i.Sent.Sub(q.Origin) + q.Retention,
	}
	q.messages[m.number] = m
	q.put(m, to, i.Until.Sub(q.Origin))
	q.Sequence(m.number)
	return nil
}

// Sequence raises the last used number to last, so that no new message gets the number of an
// earlier message.
func (q *Queue) Sequence(last uint64) { q.sent, q.made = max(q.sent, last), max(q.made, last) }

// Number returns the message's number in its queue. Each copy of a message has another number.
func (m *Message) Number() uint64 { return m.number }

// Each calls f with every message, in the order of their numbers, and whether it is delayed.
func (q *Queue) Each(f func(m queue.Message, delayed bool)) {
	for _, n := range slices.Sorted(maps.Keys(q.messages)) {
		f(q.messages[n].Message, q.messages[n].place == delayed)
	}
}

// Made returns how many messages and additional copies were made.
func (q *Queue) Made() uint64 { return q.made }

// Next returns when the next invisible message becomes visible, or false if no message is
// invisible.
func (q *Queue) Next() (at time.Duration, ok bool) {
	at, _, ok = q.due.First()
	return at, ok
}

// Advance makes all messages visible whose time has come. A driver calls Advance before any other
// method.
func (q *Queue) Advance(now time.Duration) {
	for m, ok := q.due.Due(now); ok; m, ok = q.due.Due(now) {
		q.put(m, visible, 0)
	}
}

// Front returns the message that is received next, or nil. Front removes messages that are older
// than the retention period. Front moves messages that were received too often to the dead-letter
// queue.
func (q *Queue) Front(now time.Duration) *Message {
	for q.count[inFlight] < q.MaxInFlight {
		m := q.first()
		switch {
		case m == nil:
			return nil
		case now >= m.expires:
			q.drop()
			q.leave(m, Expired)
		case q.Dead != nil && q.MaxReceiveCount > 0 && m.ReceiveCount >= q.MaxReceiveCount:
			q.drop()
			q.move(m)
		default:
			return m
		}
	}
	return nil
}

// first returns the message at the front of the visible list. The method removes deleted messages
// from the list.
func (q *Queue) first() *Message {
	for q.head < len(q.visible) {
		if n := len(q.visible) - q.head; n > 1 && q.Pick != nil {
			i := q.head + q.Pick(n)
			q.visible[q.head], q.visible[i] = q.visible[i], q.visible[q.head]
		}
		if m := q.visible[q.head]; m.place == visible {
			return m
		}
		q.drop()
	}
	q.visible, q.head = q.visible[:0], 0
	return nil
}

// drop removes the front of the visible list, and frees memory once half of the list is empty.
func (q *Queue) drop() {
	q.visible[q.head] = nil
	q.head++
	if q.head >= 1024 && 2*q.head >= len(q.visible) {
		n := copy(q.visible, q.visible[q.head:])
		clear(q.visible[n:])
		q.visible, q.head = q.visible[:n], 0
	}
}

// Take receives m, which must be the message at the front.
func (q *Queue) Take(now time.Duration, m *Message) {
	q.drop()
	m.ReceiveCount++
	m.Receipt = receipt(m.number, m.ReceiveCount)
	if m.FirstReceived.IsZero() {
		m.FirstReceived = q.moment(now)
	}
	m.received = now
	q.put(m, inFlight, now+q.Visibility)
	if q.Taken != nil {
		q.Taken(m)
	}
}

// move moves a message to the dead-letter queue, as the redrive policy does. The message keeps its
// id and its time of sending. The receive count of the message starts again at 0.
func (q *Queue) move(m *Message) {
	moved := m.Message
	moved.Receipt, moved.ReceiveCount, moved.FirstReceived, moved.MovedFrom = "", 0, time.Time{}, q.Name
	q.Dead(moved)
	q.leave(m, Moved)
}

func (q *Queue) leave(m *Message, why Departure) {
	q.put(m, gone, 0)
	if q.Left != nil {
		q.Left(m, why)
	}
}

// Find returns the message of a receipt handle, or nil. latest says whether the handle comes from
// the latest receive of the message.
func (q *Queue) Find(handle string) (m *Message, latest bool) {
	number, _, _ := strings.Cut(handle, ".")
	n, err := strconv.ParseUint(number, 36, 64)
	if err != nil {
		return nil, false
	}
	m = q.messages[n]
	return m, m != nil && m.Receipt == handle
}

func receipt(number uint64, count int) string {
	var b [32]byte
	return string(strconv.AppendInt(append(strconv.AppendUint(b[:0], number, 36), '.'), int64(count), 36))
}

// Hold makes a message in flight invisible for d from now, or visible at once if d is 0. If m is
// nil or not in flight, the error is queue.ErrGone. If Hold returns an error, it changes nothing.
func (q *Queue) Hold(now time.Duration, m *Message, d time.Duration) error {
	if m == nil || m.place != inFlight {
		return queue.ErrGone
	}
	if err := queue.HoldRefusal(d, now-m.received); err != nil {
		return err
	}
	if d == 0 {
		q.put(m, visible, 0)
	} else {
		q.Reappear(m, now+d)
	}
	return nil
}

// Reappear sets another time at which a message in flight becomes visible.
func (q *Queue) Reappear(m *Message, at time.Duration) { q.put(m, inFlight, at) }

// Delete deletes a message, even if the message became visible again after it was received.
func (q *Queue) Delete(m *Message) { q.leave(m, Deleted) }

// Expire removes messages from the front as long as they are older than the retention period.
func (q *Queue) Expire(now time.Duration) {
	for m := q.first(); m != nil && now >= m.expires; m = q.first() {
		q.leave(m, Expired)
	}
}

// Oldest returns the age of the oldest message that was received fewer times than received, or
// false if there is none. If the redrive policy moved a message into this queue, its age counts
// from then, as in SQS.
func (q *Queue) Oldest(now time.Duration, received int) (age time.Duration, ok bool) {
	for _, m := range q.messages {
		if m.place != delayed && m.ReceiveCount < received {
			age, ok = max(age, now-m.entered), true
		}
	}
	return age, ok
}

// Counts contains the numbers of messages that SQS calls ApproximateNumberOfMessages, NotVisible
// and Delayed. Here these numbers are exact.
type Counts struct{ Visible, InFlight, Delayed int }

// Total returns the number of all messages in the queue.
func (c Counts) Total() int { return c.Visible + c.InFlight + c.Delayed }

// Counts returns how many messages are in each place.
func (q *Queue) Counts() Counts {
	return Counts{Visible: q.count[visible], InFlight: q.count[inFlight], Delayed: q.count[delayed]}
}
