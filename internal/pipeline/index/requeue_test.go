// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

// throttled stores a health row of a sink that accepts 7 documents a second. Other flights have
// taken the time of that sink for the given duration.
func (b *bench) throttled(ahead time.Duration, change func(*shard.Row)) {
	row := shard.Row{
		Doc: shard.HealthRow("search"), Rate: 7000, RateTop: 8000, RateAt: now(), PaidUntil: now().Add(ahead),
	}
	change(&row)
	b.Write(shardtest.Put(row))
}

// If a flight that gets no slot kept its messages, it would wait, read its rows and ask for a slot
// again, for minutes. So the messages wait in the queue instead.
func TestAMessageWaitsInTheQueueForASinkThatThrottles(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1), put("b", 1))
		b.throttled(30*time.Second, func(*shard.Row) {})
		if s = b.turn(s); !s.Done {
			b.Fatal("the flight waits for its slot, want it to end")
		}
		b.Noted(journal.Requeued, 1)
		n := b.Notes.Of(journal.Requeued)[0]
		if wait := time.Until(n.Until); n.Count != 2 || wait < 12*time.Second || wait > 18*time.Second {
			b.Errorf("%d messages wait for %s, want 2 for 15 s, a fifth more or less", n.Count, wait)
		}
		b.Noted(journal.Waiting, 0) // the rows of the flight were not read
		b.queued(0, 2, "both wait in the queue")
		if _, err := b.flights.Get(b.Context(), s.Flight); !errors.Is(err, flight.ErrNotFound) {
			b.Errorf("manifest of the flight: %v, want it deleted", err)
		}
		time.Sleep(40 * time.Second)
		b.fly(b.receive(flight.Live), 10)
		b.Noted(journal.Committed, 2)
		b.inQueue(0)
	})
}

// Documents that do not fit into the flight's slot wait in the queue, unless the flight can also
// get the next slot.
func TestTheRestOfASlotWaitsInTheQueue(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(many(40, put, "d")...)
		b.throttled(0, func(*shard.Row) {})
		for s = b.turn(s); !s.Done; s = b.turn(s) {
			b.throttled(30*time.Second, func(*shard.Row) {}) // other flights take the time after this slot
		}
		written := len(b.Notes.Of(journal.Committed))
		if written == 0 || written == 40 {
			b.Errorf("%d of 40 documents were written, want some of them", written)
		}
		rest := 0
		for _, n := range b.Notes.Of(journal.Requeued) {
			rest += n.Count
		}
		if written+rest != 40 {
			b.Errorf("%d were written and %d wait in the queue, want all 40", written, rest)
		}
	})
}

func TestAFlightKeepsItsMessagesWhile(t *testing.T) {
	usecasetest.Table(t, stage{}.play, map[string]struct {
		row   func(*shard.Row)
		state func(*flight.State)
	}{
		"the sink starts slowly": {func(r *shard.Row) { r.RateTop = 0 }, func(*flight.State) {}},
		"the slot begins later": {func(*shard.Row) {}, func(s *flight.State) {
			s.Slot, s.SlotEnd = now().Add(20*time.Second), now().Add(22*time.Second)
		}},
		"the messages may be gone": {func(*shard.Row) {}, func(s *flight.State) {
			s.VisibleUntil = now().Add(queue.MaxHold)
		}},
	}, func(b *bench, keeps struct {
		row   func(*shard.Row)
		state func(*flight.State)
	},
	) {
		s := b.hold(put("a", 1))
		b.throttled(30*time.Second, keeps.row)
		keeps.state(&s)
		if s = b.turn(s); s.Done {
			b.Error("the flight ended, want it to wait")
		}
		b.Noted(journal.Requeued, 0)
	})
}

// A rescued flight must wait, because SQS may not deliver its messages again.
func TestARescuedFlightWaitsForItsSink(t *testing.T) {
	usecasetest.Table(t, stage{}.play, map[string]time.Duration{
		"that is paused": 2 * time.Minute, "for more than twelve hours": 13 * time.Hour,
	}, func(b *bench, paused time.Duration) {
		s := b.hold(put("a", 1))
		s.VisibleUntil = now().Add(queue.MaxHold)
		b.Write(shard.Pause("search", now(), "ann", ""))
		for begun := time.Now(); time.Since(begun) < paused; {
			if s = b.turn(s); s.Done { // the flight may continue in another execution
				s = b.launched.list[len(b.launched.list)-1]
			}
			if len(b.Notes.Of(journal.Ended)) > 0 {
				b.Fatal("the flight ended, and its version may be lost")
			}
		}
		b.Write(shard.Resume("search", b.Row(shard.HealthRow("search")), now(), b.Config.Retry.OpenFor))
		b.fly(s, 30)
		b.Noted(journal.Committed, 1)
	})
}
