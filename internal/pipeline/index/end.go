// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// ending ends a flight.
type ending struct {
	*messages
	budget  *budget
	flights flight.Store
}

// end deletes the manifest and its checkpoints. If a deletion fails, prune deletes them later.
func (s *ending) end(ctx context.Context) flight.State {
	s.budget.forfeit(ctx)
	s.noteFailed("delete the manifest", "", s.flights.Delete(ctx, s.state.Flight))
	s.note(journal.Note{Step: journal.Ended, Count: s.state.Turn + 1})
	return finished(s.state)
}

// endAway ends the flight and leaves its messages in the queue. The messages stay invisible for the
// time that the health row of the sink or enricher says. A wait in SQS costs nothing, but a wait in
// an execution costs money. Redelivery judges the messages again.
func (s *ending) endAway(ctx context.Context, health shard.Row, why string) flight.State {
	now, draw, bulk := s.now(), s.jitter(), s.lane == flight.Bulk
	return s.endInQueue(ctx, journal.Away, why, func(receives int) time.Duration {
		return s.config.Retry.AwayWait(health, now, bulk, receives, draw)
	})
}

// requeue ends the flight and leaves its messages in the queue until the flight of a later receive
// may get a slot. This flight need not read the rows, because redelivery judges the messages again.
func (s *ending) requeue(ctx context.Context) flight.State {
	health, now, draw := s.budget.sink.row, s.now(), s.jitter()
	beyond, age, bulk := s.budget.beyondHorizon(), s.budget.age(), s.lane == flight.Bulk
	return s.endInQueue(ctx, journal.Requeued, "the sink throttles: other flights have taken its budget",
		func(receives int) time.Duration {
			return s.config.Retry.ThrottledWait(health, now, bulk, receives, beyond, age, draw)
		})
}

// endInQueue ends the flight. The messages stay in the queue. Each message stays invisible for a
// wait that depends on how often the message was received.
func (s *ending) endInQueue(ctx context.Context, step journal.Step, why string,
	waitOf func(receives int) time.Duration,
) flight.State {
	// The key of the map is the wait: one call of Hold serves all messages with the same wait.
	waits := map[time.Duration][]string{}
	for r := range s.records {
		if m := s.manifest.Records[r].Message; s.records[r].open > 0 {
			wait := waitOf(m.ReceiveCount)
			waits[wait] = append(waits[wait], m.Receipt)
		}
	}
	for _, wait := range slices.Sorted(maps.Keys(waits)) {
		until := min(s.now().Add(wait), s.longestHold())
		s.hold(ctx, waits[wait], until)
		s.note(journal.Note{
			Step: step, Count: len(waits[wait]), Until: until.Time(), Detail: why,
		})
	}
	return s.end(ctx)
}

// endWithoutMessages ends the flight and leaves its messages in SQS.
func (s *ending) endWithoutMessages(ctx context.Context, extend shard.Micros) flight.State {
	s.extend(ctx, extend)
	for _, d := range s.docs {
		for e := range d.unfinished() {
			n := s.about(d, e, journal.LeftSuperseded, d.step.Why)
			n.Until = s.visible(e.record).Time()
			s.note(n)
		}
	}
	return s.end(ctx)
}

// endBeforeTwelveHours gives all messages back before SQS ends their invisibility. That costs one
// receive in twelve hours. The messages get new receipt handles and another twelve hours.
func (s *ending) endBeforeTwelveHours(ctx context.Context) flight.State {
	receipts := s.remainingReceipts()
	s.hold(ctx, receipts, 0)
	s.note(journal.Note{Step: journal.TwelveHours, Count: len(receipts)})
	return s.end(ctx)
}

// maxLeave is the largest number of messages that leave one flight. Each message costs a part of a
// receive when it returns, and counts as in flight until its visibility ends. Under much traffic a
// flight holds hundreds of messages. A few more turns then cost less (ADR 0028).
const maxLeave = 100

// mayLeave reports whether superseded messages may leave this flight. They may not leave while the
// sink is unhealthy or throttles, because the older message would return before the newer version
// is written. The messages of a rescued flight may not leave either, because SQS may not deliver
// them again.
func (s *planner) mayLeave() bool {
	return !s.rescued() && s.sink.circuit == shard.CircuitClosed && !s.sink.tripped &&
		s.budget.keepsUp() && s.config.Queues.SupersededLeave() && len(s.remainingReceipts()) <= maxLeave
}

// leaves reports whether all remaining messages are superseded and may leave. SQS shows the
// messages again when their visibility ends. By then the newer versions should be written, and
// receive acknowledges the older versions as stale. A message leaves only once: if it returns too
// early, it stays in its flight, so that the cap applies to it.
//
// The newer versions may be due after the messages return. If they are due later than the queue's
// visibility from now, lull extends the visibility of the messages to that time.
func (s *planner) leaves() (extend shard.Micros, ok bool) {
	if !s.mayLeave() {
		return 0, false
	}
	newer := shard.Micros(0)
	for _, d := range s.docs {
		for e := range d.unfinished() {
			if d.step.Newer == 0 || s.message(e).ReceiveCount > 1 {
				return 0, false
			}
			newer = max(newer, d.step.Newer)
		}
	}
	if newer <= s.firstVisible().Add(-s.config.Index.Timeout) {
		return 0, true
	}
	return newer.Add(s.config.Index.Extended(s.window())), newer.Sub(s.now()) > s.config.Queues.Visibility
}
