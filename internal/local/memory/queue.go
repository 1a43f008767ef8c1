// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
)

// QueueSettings contains the settings of an SQS standard queue.
type QueueSettings struct {
	Name            string        // the name of the queue; also the MovedFrom of messages that it moves to DeadLetter
	Visibility      time.Duration // how long a received message stays invisible; 0 means 30 s, as in SQS
	Retention       time.Duration // how long a message is kept, counted from Sent; 0 means 4 days, as in SQS
	MaxReceiveCount int           // receives before a message is moved to DeadLetter, 0 for no redrive policy
	DeadLetter      *Queue        // the dead-letter queue; nil means no redrive policy
	// while so many messages are in flight, receivers wait; 0 means [emulation.MaxInFlight]
	MaxInFlight int

	// Deliver is called once for each sent message, under the queue's lock, and may be nil. With
	// Deliver, a test imitates a standard queue, which may deliver a message late, out of order, or
	// twice. The second copy has the same id and another receipt handle.
	Deliver func() (late time.Duration, twice bool)
}

// Queue runs an [emulation.Queue] with a clock. A Queue is safe for concurrent use.
type Queue struct {
	clk     clock.Clock
	deliver func() (late time.Duration, twice bool)
	keep    Keeper

	mu      sync.Mutex
	q       *emulation.Queue
	waiters []*waiter // the calls that wait for messages; the first one gets the next messages
}

var _ queue.Queue = (*Queue)(nil)

// NewQueue returns an empty queue.
func NewQueue(clk clock.Clock, set QueueSettings) *Queue {
	s := emulation.QueueSettings{
		Name: set.Name, Origin: clk.Now(), MaxReceiveCount: set.MaxReceiveCount,
		Visibility:  cmp.Or(set.Visibility, 30*time.Second),
		Retention:   cmp.Or(set.Retention, 4*24*time.Hour),
		MaxInFlight: cmp.Or(set.MaxInFlight, emulation.MaxInFlight),
	}
	if set.DeadLetter != nil {
		s.Dead = set.DeadLetter.accept
	}
	return &Queue{clk: clk, deliver: set.Deliver, keep: forgetful{}, q: emulation.NewQueue(s)}
}

// roomBodies and roomPlaces return the rooms of the Keeper in which the queue stores its messages.
// The body of a message never changes. So the bodies are stored in another room than the changing
// places of the messages.
func (q *Queue) roomBodies() string { return "body " + q.Name() }
func (q *Queue) roomPlaces() string { return "message " + q.Name() }

// RoomClock is the room for the latest times of a run, by the name of the queue that saw the time.
const RoomClock = "clock"

// sequence is the key under which the highest number of a message is stored.
const sequence = "last"

// Keep restores the messages that the Keeper has stored. From then on, the queue stores all changes
// in the Keeper. Call Keep before any other method.
func (q *Queue) Keep(k Keeper) error {
	bodies := map[string]keptMessage{}
	err := restore(k, q.roomBodies(), func(key string, m keptMessage) error {
		bodies[key] = m
		return nil
	})
	if err != nil {
		return err
	}
	err = restore(k, q.roomPlaces(), func(key string, i emulation.Image) error {
		if key == sequence {
			q.q.Sequence(i.Number)
			return nil
		}
		m, ok := bodies[key]
		if !ok {
			return fmt.Errorf("nothing has its body")
		}
		i.Body, i.Attributes = string(m.Body), m.Attributes
		return q.q.Restore(i)
	})
	if err != nil {
		return err
	}
	q.keep = k
	q.q.Placed = q.keepPlace
	q.q.Left = func(m *emulation.Message, _ emulation.Departure) {
		key := numbered(m)
		k.Delete(q.roomBodies(), key)
		k.Delete(q.roomPlaces(), key)
	}
	return nil
}

func numbered(m *emulation.Message) string { return fmt.Sprintf("%016x", m.Number()) }

// keepPlace stores a message that changed its place in the Keeper.
func (q *Queue) keepPlace(m *emulation.Message, until time.Time) {
	key, i := numbered(m), q.q.ImageOf(m, until)
	if m.ReceiveCount == 0 {
		q.keep.Put(q.roomBodies(), key, keptMessage{[]byte(i.Body), i.Attributes})
		q.keep.Put(q.roomPlaces(), sequence, emulation.Image{Number: q.q.Made()})
	}
	i.Body, i.Attributes = "", nil
	q.keep.Put(q.roomPlaces(), key, i)
	q.keep.Put(RoomClock, q.Name(), q.clk.Now())
}

// Each calls f with every message. delayed says whether the message is delayed.
func (q *Queue) Each(f func(m queue.Message, delayed bool)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.q.Each(f)
}

// Name returns the name in the settings.
func (q *Queue) Name() string { return q.q.Name }

// now returns the time since the origin of the queue.
func (q *Queue) now() time.Duration { return q.clk.Now().Sub(q.q.Origin) }

// Send puts messages into the queue, except those that SQS would refuse.
func (q *Queue) Send(ctx context.Context, out []queue.Outgoing) []error {
	return entries(ctx, q, "send", out, func(now time.Duration, o *queue.Outgoing) error {
		msg, err := q.q.New(now, o)
		if err != nil {
			return err
		}
		late, twice := time.Duration(0), false
		if q.deliver != nil {
			late, twice = q.deliver()
		}
		q.q.Enter(now, msg, o.Delay+late)
		if twice {
			q.q.Enter(now, msg, o.Delay)
		}
		return nil
	})
}

// Hold makes messages in flight invisible for d from now. As in SQS, a message may be invisible for
// at most twelve hours after its receive. Otherwise Hold returns an error and changes nothing.
func (q *Queue) Hold(ctx context.Context, receipts []string, d time.Duration) []error {
	return entries(ctx, q, "hold", receipts, func(now time.Duration, receipt *string) error {
		m, latest := q.q.Find(*receipt)
		if !latest {
			return queue.ErrGone
		}
		return q.q.Hold(now, m, d)
	})
}

// Delete deletes the messages whose latest receipts are given, even if they are visible again.
// Delete ignores receipts of earlier receives.
func (q *Queue) Delete(ctx context.Context, receipts []string) []error {
	return entries(ctx, q, "delete", receipts, func(_ time.Duration, receipt *string) error {
		if m, latest := q.q.Find(*receipt); latest {
			q.q.Delete(m)
		}
		return nil
	})
}

// entries calls do for each entry of a call. After that, entries gives visible messages to waiting
// receivers.
func entries[T any](ctx context.Context, q *Queue, doing string, in []T,
	do func(now time.Duration, entry *T) error,
) []error {
	if err := ctx.Err(); err != nil {
		return queue.FailAll(len(in), fmt.Errorf("%s: %w", doing, err))
	}
	errs := make([]error, len(in))
	defer q.keep.Flush()
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	q.q.Advance(now)
	for i := range in {
		errs[i] = do(now, &in[i])
	}
	q.offer(now)
	return queue.Answer(errs)
}

// accept adds a message that the redrive policy of another queue moves to this queue.
func (q *Queue) accept(msg queue.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	q.q.Enter(now, msg, 0)
	q.offer(now)
}

// QueueCounts contains the numbers of messages that SQS calls ApproximateNumberOfMessages,
// NotVisible and Delayed. Here these numbers are exact.
type QueueCounts = emulation.Counts

// Counts returns the numbers of messages at this moment.
func (q *Queue) Counts() QueueCounts {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	q.q.Advance(now)
	q.q.Expire(now)
	return q.q.Counts()
}

// Oldest returns when the oldest message arrived, or false if there is none. Oldest ignores delayed
// messages.
func (q *Queue) Oldest() (came time.Time, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	q.q.Advance(now)
	age, ok := q.q.Oldest(now, math.MaxInt)
	return q.q.Origin.Add(now - age), ok
}
