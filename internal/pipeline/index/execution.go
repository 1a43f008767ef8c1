// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"context"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// execution is the execution that runs this flight. A new execution may continue the flight.
type execution struct {
	*invocation
	flights  flight.Store
	launcher flight.Launcher
	behind   time.Duration // how far our clock is behind the clock of the state machine, at least
}

// These constants say whether this execution must end even if the next one cannot be started. If it
// may stay, the flight can also wait in this execution, at a higher price.
const (
	mayStay = false
	mustGo  = true
)

// wakeText converts a time of our clock to the clock of the state machine, which wakes the flight.
// Without this, the time could already be past for the state machine, and the flight would not
// sleep at all.
func (x *execution) wakeText(at shard.Micros) string { return flight.WakeText(at.Add(x.behind).Time()) }

// kind returns the kind of this execution. The setting applies to the next execution and may have
// changed. If the state has no kind, older code started the execution, and its setting could not be
// auto.
func (x *execution) kind() config.FlightKind {
	return cmp.Or(x.state.Kind, x.config.Flight.KindFor(0))
}

// nextKind returns the kind of execution for the next turn. With the setting auto, the kind is the
// cheaper kind for that wait. Otherwise this execution continues.
func (x *execution) nextKind(wake shard.Micros) config.FlightKind {
	if f := x.config.Flight; f.Kind == config.FlightAuto {
		return f.KindFor(wake.Sub(x.now()))
	}
	return x.kind()
}

// outlives reports whether the next turn would exceed this execution's limits: five minutes for
// Express, 25,000 events for Standard.
func (x *execution) outlives(next flight.State) bool {
	if x.kind() == config.FlightStandard {
		return x.state.Turn%standardTurns == standardTurns-1
	}
	end := x.state.Started.Add(x.config.Flight.ContinueAfter)
	return x.state.Started != 0 && shard.MicrosOf(next.Wake()) >= end
}

// continueFlight starts the next execution on the same manifest, once: the turn that creates the
// checkpoint starts it. If that start is lost, the flight is dead, and redelivery recovers it. If
// this execution may stay, it stays after a failed start. If both executions then run, two turns of
// one flight do no harm.
func (x *execution) continueFlight(ctx context.Context, next flight.State, must bool) bool {
	next.Leg++
	// The next execution has its own limits, which begin at its start.
	wait := shard.MicrosOf(next.Wake()).Add(-x.behind).Sub(x.now())
	next.Started, next.Kind = 0, x.config.Flight.KindFor(wait)
	created, tries := false, 0
	err := backoff.Do(ctx, x.clock, func() (err error) {
		tries++
		created, err = x.flights.Continue(ctx, next.Flight, next.Leg, next)
		return err
	})
	x.noteFailed("write the checkpoint", "", err)
	if err != nil {
		return false // the next turn tries again
	}
	// If a try got no answer and the checkpoint exists, this turn most likely created it. A second
	// start does no harm.
	created = created || tries > 1
	n := journal.Note{Step: journal.Continued, Count: next.Leg}
	if !created {
		n.Detail = "another turn has continued the flight"
		x.note(n)
		return true
	}
	err = backoff.Do(ctx, x.clock, func() error { return x.launcher.Start(ctx, next) })
	if err != nil && !must {
		x.noteFailed("start an execution of the other kind", "", err)
		return false
	}
	if err != nil {
		n.Step, n.Detail = journal.LaunchLost, err.Error()
	}
	x.note(n)
	return true
}

// next returns the state that wakes after a back-off. If this execution would end before the wake,
// the flight continues in a new execution.
func (x *execution) next(ctx context.Context, next flight.State) flight.State {
	next.WakeAt = x.wakeText(x.now().Add(max(x.delay(next.Turn), time.Second)))
	if x.outlives(next) && x.continueFlight(ctx, next, mustGo) {
		return finished(next)
	}
	return next
}
