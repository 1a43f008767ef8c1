// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// planner plans the next turn of a flight, or ends it.
type planner struct {
	*messages
	sink      *health
	budget    *budget
	enrichers *enrichers
	ending    *ending
	execution *execution
}

// checkpointAgain is how long a turn waits if its checkpoint could not be written. The execution
// then has about a minute left.
const checkpointAgain = 5 * time.Second

// finish ends the turn: the flight is done, waits for its next wake, or continues in a new
// execution.
func (s *planner) finish(ctx context.Context) flight.State {
	probes := s.sink.probesNext()
	switch {
	case probes:
		s.wakeBy(s.sink.next) // the documents may wait longer, for example until a lease ends
	case s.left.Empty():
		return s.ending.end(ctx)
	case s.goesAway():
		return s.ending.endAway(ctx, s.sink.row, config.AwayText(s.sink.row))
	}
	if e := s.enrichers.awaited(); e != nil && !s.rescued() {
		return s.ending.endAway(ctx, e.row, "the enricher is away")
	}
	if s.budget.without && s.budget.requeues() {
		return s.ending.requeue(ctx)
	}
	if extend, ok := s.leaves(); ok {
		return s.ending.endWithoutMessages(ctx, extend)
	}
	next := s.state
	next.Remaining, next.Turn = s.left, s.state.Turn+1
	wake := max(s.wake, s.now()+1) // the next whole second at the earliest, so that no turn starts at once again
	kind := s.execution.nextKind(wake)
	switch kind {
	case config.FlightExpress:
		// an Express execution that sleeps longer is ended before it wakes
		wake = min(wake, s.now().Add(s.config.Flight.ContinueAfter))
	case config.FlightStandard:
		wake = flight.Together(wake, s.coming(), s.window())
	}
	next.WakeAt = s.execution.wakeText(wake)
	wake = shard.MicrosOf(next.Wake()).Add(-s.execution.behind)
	// The extension lasts until the next wake + 5 s + 2 Ti, never longer (design section 7).
	s.extend(ctx, wake.Add(flight.TurnLate+2*s.config.Index.Timeout))
	next.VisibleUntil = s.state.VisibleUntil
	if kind != s.execution.kind() {
		if s.execution.continueFlight(ctx, next, mayStay) {
			return finished(next)
		}
		next.Leg++ // the checkpoint of this leg may exist, and an execution that finds a checkpoint ends
		// Wait in this execution until just before its end. Then try again.
		if s.execution.kind() == config.FlightExpress {
			end := s.state.Started.Add(s.config.Flight.ContinueAfter - time.Second).Add(-s.execution.behind)
			next.WakeAt = s.execution.wakeText(min(wake, max(end-1, s.now()+1)))
		}
	}
	if s.execution.outlives(next) {
		if s.execution.continueFlight(ctx, next, mustGo) {
			return finished(next)
		}
		next.WakeAt = s.execution.wakeText(min(wake, s.now().Add(checkpointAgain)))
	}
	return next
}

// goesAway reports whether the flight ends because its sink is away. The flight that opened the
// circuit stays and probes the sink. A rescued flight stays, because its messages may no longer be
// in the queue.
func (s *planner) goesAway() bool {
	now, until := s.now(), s.sink.row.OpenUntil
	open := (s.sink.tripped || s.sink.circuit == shard.CircuitOpen) && now <= until && s.state.Probes != until
	paused := s.sink.row.PausedAt != 0 // no flight probes a paused sink
	return (open || paused) && s.config.Retry.Away(s.sink.row, now) && !s.rescued()
}

// coming returns the due times of the remaining documents.
func (s *planner) coming() []shard.Micros {
	var due []shard.Micros
	for _, d := range s.docs {
		if e := d.newest(); e != nil {
			due = append(due, e.Due)
		}
	}
	return due
}
