package index

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// finish ends the turn: the flight is done, waits for its next wake, or goes on in a new execution.
func (t *turn) finish(ctx context.Context) flight.State {
	if t.left.Empty() {
		return t.end(ctx)
	}
	switch {
	case t.goesAway():
		return t.away(ctx, config.AwayText(t.sink.row))
	case t.awaitsEnricher():
		return t.away(ctx, "the enricher is away")
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
		// an execution that slept longer would be ended before it wakes
		wake = min(wake, t.now().Add(t.h.Config.Flight.ContinueAfter))
	case config.FlightStandard:
		wake = flight.Together(wake, t.coming(), t.window())
	}
	next.WakeAt = t.wakeText(wake)
	wake = shard.MicrosOf(next.Wake()).Add(-t.behind)
	// An extension reaches to the next wake + 5 s + 2 Ti, never further (design section 7).
	t.extend(ctx, wake.Add(flight.TurnLate+2*t.h.Config.Index.Timeout))
	next.VisibleUntil = t.state.VisibleUntil
	if kind != t.kind() {
		if t.goOn(ctx, next, mayStay) {
			return finished(next)
		}
		next.Leg++                            // its checkpoint may be there: whoever finds one ends
		if t.kind() == config.FlightExpress { // as long as it lives; then it tries again
			end := t.state.Started.Add(t.h.Config.Flight.ContinueAfter - time.Second).Add(-t.behind)
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

// Why a flight goes on in another execution: this one may wait, too, at a higher price; or it ends.
const (
	mayStay = false
	mustGo  = true
)

// wakeText is a time of ours by the clock of the state machine, which wakes by its own. A flight
// would not sleep at all until a time that is past for it.
func (t *turn) wakeText(at shard.Micros) string { return flight.WakeText(at.Add(t.behind).Time()) }

// checkpointAgain is how long a turn whose checkpoint could not be written waits: an execution has
// about a minute left then.
const checkpointAgain = 5 * time.Second

// goesAway reports whether the flight ends because its sink is away for long. The one that opened
// the circuit stays, and probes.
func (t *turn) goesAway() bool {
	now, until := t.now(), t.sink.row.OpenUntil
	open := (t.tripped || t.sink.circuit == shard.CircuitOpen) && now <= until && t.state.Probes != until
	paused := t.sink.row.PausedAt != 0 // nobody probes
	return (open || paused) && t.h.Config.Retry.Away(t.sink.row, now)
}

// away leaves the messages in the queue, invisible for some minutes, and ends the flight: SQS waits
// for nothing, an execution does not. Redelivery judges them again.
func (t *turn) away(ctx context.Context, why string) flight.State {
	draw := t.h.Jitter()
	// By wait: one call of Hold serves all messages that wait equally long.
	waits := map[time.Duration][]string{}
	for r := range t.records {
		if m := t.manifest.Records[r].Message; t.records[r].open > 0 && !t.records[r].given {
			wait := config.AwayWait(m.ReceiveCount, draw)
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

// end removes the manifest and its checkpoints. What cannot be removed now is collected by prune.
func (t *turn) end(ctx context.Context) flight.State {
	t.forfeit(ctx)
	t.lost("delete the manifest", "", t.h.Flights.Delete(ctx, t.state.Flight))
	t.note(journal.Note{Step: journal.Ended, Count: t.state.Turn + 1})
	return finished(t.state)
}

// kind is what runs this execution. The setting says it of the next one: it may have changed since.
// An execution that does not know is of older code, whose setting had no auto.
func (t *turn) kind() config.FlightKind {
	return cmp.Or(t.state.Kind, t.h.Config.Flight.KindFor(0))
}

// nextKind is what waits for the next turn: by the setting auto another kind of execution, where
// that is cheaper for so long a wait. Otherwise this one goes on.
func (t *turn) nextKind(wake shard.Micros) config.FlightKind {
	if f := t.h.Config.Flight; f.Kind == config.FlightAuto {
		return f.KindFor(wake.Sub(t.now()))
	}
	return t.kind()
}

// coming is when documents that are not due yet have their turn.
func (t *turn) coming() []shard.Micros {
	var due []shard.Micros
	for _, d := range t.docs {
		if e := d.newest(); e != nil {
			due = append(due, e.Due)
		}
	}
	return due
}

// outlives reports whether the next turn could not end inside this execution's limits: five minutes
// for Express, 25,000 events for Standard.
func (t *turn) outlives(next flight.State) bool {
	if t.kind() == config.FlightStandard {
		return t.state.Turn%standardTurns == standardTurns-1
	}
	end := t.state.Started.Add(t.h.Config.Flight.ContinueAfter)
	return t.state.Started != 0 && shard.MicrosOf(next.Wake()) >= end
}

// goOn starts the next execution on the same manifest, once: whoever creates the checkpoint starts
// it. If the start is lost the flight is dead, and redelivery recovers it. Where it may stay it
// then stays: should the other execution run all the same, two of one flight do no harm.
func (t *turn) goOn(ctx context.Context, next flight.State, must bool) bool {
	next.Leg++
	// The limits of an execution count anew for the next one.
	wait := shard.MicrosOf(next.Wake()).Add(-t.behind).Sub(t.now())
	next.Started, next.Kind = 0, t.h.Config.Flight.KindFor(wait)
	created, tries := false, 0
	err := backoff.Do(ctx, t.h.Clock, func() (err error) {
		tries++
		created, err = t.h.Flights.Continue(ctx, next.Flight, next.Leg, next)
		return err
	})
	t.lost("write the checkpoint", "", err)
	if err != nil {
		return false // the next turn tries again
	}
	// there already, after a try without an answer, is most likely ours; a second start does no
	// harm
	created = created || tries > 1
	n := journal.Note{Step: journal.Continued, Count: next.Leg}
	if !created {
		n.Detail = "somebody else has continued it"
		t.note(n)
		return true
	}
	err = backoff.Do(ctx, t.h.Clock, func() error { return t.h.Launcher.Start(ctx, next) })
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
