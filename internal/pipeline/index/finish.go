package index

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// finish ends the turn: the flight is done, waits for its next wake, or continues in a new
// execution.
func (t *turn) finish(ctx context.Context) flight.State {
	probes := t.sink.probesNext()
	switch {
	case probes:
		t.again(t.sink.next) // its documents may wait longer, for example for a lease to end
	case t.left.Empty():
		return t.end(ctx)
	case t.goesAway():
		return t.away(ctx, t.sink.row, config.AwayText(t.sink.row))
	}
	if e := t.awaitsEnricher(); e != nil {
		return t.away(ctx, e.row, "the enricher is away")
	}
	if extend, ok := t.leaves(); ok {
		return t.leave(ctx, extend)
	}
	next := t.state
	next.Remaining, next.Turn = t.left, t.state.Turn+1
	wake := max(t.wake, t.now()+1) // the next whole second at the earliest: no turn spins
	kind := t.nextKind(wake)
	switch kind {
	case config.FlightExpress:
		// an execution that sleeps longer is ended before it wakes
		wake = min(wake, t.now().Add(t.config.Flight.ContinueAfter))
	case config.FlightStandard:
		wake = flight.Together(wake, t.coming(), t.window())
	}
	next.WakeAt = t.wakeText(wake)
	wake = shard.MicrosOf(next.Wake()).Add(-t.behind)
	// An extension lasts until the next wake + 5 s + 2 Ti, never longer (design section 7).
	t.extend(ctx, wake.Add(flight.TurnLate+2*t.config.Index.Timeout))
	next.VisibleUntil = t.state.VisibleUntil
	if kind != t.kind() {
		if t.goOn(ctx, next, mayStay) {
			return finished(next)
		}
		next.Leg++                            // its checkpoint may exist, and an execution that finds one ends
		if t.kind() == config.FlightExpress { // until this execution ends; then it tries again
			end := t.state.Started.Add(t.config.Flight.ContinueAfter - time.Second).Add(-t.behind)
			next.WakeAt = t.wakeText(min(wake, max(end-1, t.now()+1)))
		}
	}
	if t.outlives(next) {
		if t.goOn(ctx, next, mustGo) {
			return finished(next)
		}
		next.WakeAt = t.wakeText(min(wake, t.now().Add(checkpointAgain)))
	}
	return next
}

// Whether this execution must end when a flight continues in another one. If it may stay, it can
// wait too, at a higher price.
const (
	mayStay = false
	mustGo  = true
)

// wakeText converts a time of our clock to the clock of the state machine, which wakes the
// flight. For the state machine the time could otherwise be past, and the flight would not sleep
// at all.
func (t *turn) wakeText(at shard.Micros) string { return flight.WakeText(at.Add(t.behind).Time()) }

// checkpointAgain is how long a turn waits if its checkpoint could not be written. The execution
// then has about a minute left.
const checkpointAgain = 5 * time.Second

// goesAway reports whether the flight ends because its sink is away. The flight that opened the
// circuit stays and probes.
func (t *turn) goesAway() bool {
	now, until := t.now(), t.sink.row.OpenUntil
	open := (t.sink.tripped || t.sink.circuit == shard.CircuitOpen) && now <= until && t.state.Probes != until
	paused := t.sink.row.PausedAt != 0 // no flight probes
	return (open || paused) && t.config.Retry.Away(t.sink.row, now)
}

// away ends the flight and leaves its messages in the queue. They stay invisible for as long as
// the health row of the sink or enricher says. A wait in SQS costs nothing, a wait in an
// execution does. Redelivery judges the messages again.
func (t *turn) away(ctx context.Context, health shard.Row, why string) flight.State {
	now, draw, bulk := t.now(), t.jitter(), t.manifest.Lane == flight.Bulk
	// Receipts by wait: one call of Hold serves all messages with the same wait.
	waits := map[time.Duration][]string{}
	for r := range t.records {
		if m := t.manifest.Records[r].Message; t.records[r].open > 0 {
			wait := t.config.Retry.AwayWait(health, now, bulk, m.ReceiveCount, draw)
			waits[wait] = append(waits[wait], m.Receipt)
		}
	}
	for _, wait := range slices.Sorted(maps.Keys(waits)) {
		until := min(t.now().Add(wait), t.longestHold())
		t.hold(ctx, waits[wait], until)
		t.note(journal.Note{
			Step: journal.Away, Count: len(waits[wait]), Until: until.Time(), Detail: why,
		})
	}
	return t.end(ctx)
}

// end deletes the manifest and its checkpoints. If a deletion fails, prune deletes them later.
func (t *turn) end(ctx context.Context) flight.State {
	t.forfeit(ctx)
	t.lost("delete the manifest", "", t.h.Flights.Delete(ctx, t.state.Flight))
	t.note(journal.Note{Step: journal.Ended, Count: t.state.Turn + 1})
	return finished(t.state)
}

// kind returns the kind of this execution. The setting is for the next one and may have changed.
// If the state has no kind, older code started the execution, and its setting had no auto.
func (t *turn) kind() config.FlightKind {
	return cmp.Or(t.state.Kind, t.config.Flight.KindFor(0))
}

// nextKind returns the kind of execution for the next turn. With the setting auto it is the
// cheaper kind for that wait. Otherwise this execution continues.
func (t *turn) nextKind(wake shard.Micros) config.FlightKind {
	if f := t.config.Flight; f.Kind == config.FlightAuto {
		return f.KindFor(wake.Sub(t.now()))
	}
	return t.kind()
}

// coming returns the due times of the remaining documents.
func (t *turn) coming() []shard.Micros {
	var due []shard.Micros
	for _, d := range t.docs {
		if e := d.newest(); e != nil {
			due = append(due, e.Due)
		}
	}
	return due
}

// outlives reports whether the next turn would exceed this execution's limits: five minutes for
// Express, 25,000 events for Standard.
func (t *turn) outlives(next flight.State) bool {
	if t.kind() == config.FlightStandard {
		return t.state.Turn%standardTurns == standardTurns-1
	}
	end := t.state.Started.Add(t.config.Flight.ContinueAfter)
	return t.state.Started != 0 && shard.MicrosOf(next.Wake()) >= end
}

// goOn starts the next execution on the same manifest, once: the turn that creates the
// checkpoint starts it. If that start is lost the flight is dead, and redelivery recovers it. If
// this execution may stay, it stays after a failed start. If both then run, two turns of one
// flight do no harm.
func (t *turn) goOn(ctx context.Context, next flight.State, must bool) bool {
	next.Leg++
	// The next execution has its own limits, counted from its start.
	wait := shard.MicrosOf(next.Wake()).Add(-t.behind).Sub(t.now())
	next.Started, next.Kind = 0, t.config.Flight.KindFor(wait)
	created, tries := false, 0
	err := backoff.Do(ctx, t.clock, func() (err error) {
		tries++
		created, err = t.h.Flights.Continue(ctx, next.Flight, next.Leg, next)
		return err
	})
	t.lost("write the checkpoint", "", err)
	if err != nil {
		return false // the next turn tries again
	}
	// a checkpoint that exists after a try without an answer is most likely ours; a second start
	// does no harm
	created = created || tries > 1
	n := journal.Note{Step: journal.Continued, Count: next.Leg}
	if !created {
		n.Detail = "somebody else has continued it"
		t.note(n)
		return true
	}
	err = backoff.Do(ctx, t.clock, func() error { return t.h.Launcher.Start(ctx, next) })
	if err != nil && !must {
		t.lost("start an execution of the other kind", "", err)
		return false
	}
	if err != nil {
		n.Step, n.Detail = journal.LaunchLost, err.Error()
	}
	t.note(n)
	return true
}
