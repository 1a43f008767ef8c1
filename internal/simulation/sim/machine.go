// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/price"
)

// machine runs [emulation.Execution]s with failures. Starts are lost or doubled, waits end early,
// Lambda refuses turns, and an operator stops executions.
type machine struct {
	w       *World
	again   time.Duration // the wait after a turn with an unknown outcome
	turn    func(ctx context.Context, v *invocation, s flight.State) (flight.State, error)
	running int
	most    int // the most turns at once; 0 for any number
	turning int
	crowded int // how many turns were refused because too many were running
}

const (
	ambiguousTries = 2 // retries of one turn after unknown outcomes
	refusedTries   = 10
	refusedWait    = 10 * time.Second
)

// execution is one execution of the state machine.
type execution struct {
	emulation.Execution
	m       *machine
	started time.Duration
	ended   bool
	refused int
	halts   int // how often the functions had been stopped when the execution started
}

var _ flight.Launcher = (*machine)(nil)

// Start simulates StartExecution.
func (m *machine) Start(_ context.Context, s flight.State) error {
	w := m.w
	rules, err := emulation.NewExecution(s, epoch.Add(w.now), ambiguousTries)
	if err != nil {
		return err
	}
	w.counts.Executions++
	if rules.Limit() > 0 {
		w.counts.usage.ExpressStarts++
	} else {
		w.counts.Standard++
	}
	if w.strikes("execution lost", w.rates.FlightLost) {
		w.trace.mark("execution lost", "", 0)
		return nil
	}
	m.run(*rules)
	if w.strikes("execution twice", w.rates.FlightTwice) {
		m.run(*rules)
	}
	return nil
}

func (m *machine) run(rules emulation.Execution) {
	w := m.w
	e := &execution{Execution: rules, m: m, started: w.now, halts: w.halts}
	m.running++
	if limit := e.Limit(); limit > 0 {
		w.after(limit, func() { e.end(endedAtLimit) })
	}
	if w.strikes("execution stopped", w.rates.StopFlight) {
		w.after(w.dice.upTo(30*time.Second), func() { e.end(endedStopped) })
	}
	e.hold()
}

// ending is how an execution ended, as the trace names it.
type ending string

const (
	endedWell    ending = ""
	endedFailed  ending = "failed"
	endedAtLimit ending = "limit"
	endedStopped ending = "stopped"
	endedByHalt  ending = "stopped with its function"
)

// end ends the execution. A running turn continues, but its answer is lost.
func (e *execution) end(why ending) {
	if e.ended {
		return
	}
	e.ended = true
	e.m.running--
	if e.Limit() > 0 {
		e.m.w.counts.usage.ExpressGBSecs += price.ExpressGBSeconds(e.m.w.now - e.started)
	}
	if monitor := e.m.w.options.Monitor; monitor != nil && why != endedWell {
		monitor.Flight(map[ending]FlightEnd{endedAtLimit: FlightTimedOut, endedStopped: FlightAborted}[why])
	}
	if why != endedWell {
		e.m.w.trace.mark("execution "+string(why), "", 0)
	}
}

// hold is the state Wait.
func (e *execution) hold() {
	w := e.m.w
	wake, err := e.Wake()
	if err != nil {
		e.end(endedFailed)
		return
	}
	w.counts.Transitions += 3 // Hold, Index, Remaining
	if e.Limit() == 0 {
		w.counts.usage.Transitions += 3 // AWS bills Express by time
	}
	wait := wake.Sub(epoch) - w.now
	if wait > 0 {
		wait = max(wait-w.dice.upTo(w.rates.WakeEarly), 0) + w.travel(fault.States)
	}
	e.after(wait)
}

// after starts a turn later, if the execution has not ended by then.
func (e *execution) after(d time.Duration) {
	e.m.w.after(d, func() {
		if !e.ended {
			e.index()
		}
	})
}

// index is one turn. Lambda may refuse the turn before it runs, or the outcome of the turn may be
// unknown.
func (e *execution) index() {
	w := e.m.w
	if w.halted || e.halts != w.halts { // the functions may have been stopped while the start was under way
		e.end(endedByHalt)
		return
	}
	throttled := w.fate("index") == Throttled
	if e.m.most > 0 && e.m.turning == e.m.most {
		e.m.crowded++
		throttled = true
	}
	if throttled && e.refused == refusedTries {
		e.end(endedFailed)
		return
	}
	if (throttled || w.strikes("invocation refused", w.rates.InvokeRefuse)) && e.refused < refusedTries {
		e.refused++
		e.after(w.dice.upTo(min(time.Second<<e.refused, refusedWait)))
		return
	}
	e.refused = 0
	s, err := e.Input()
	if err != nil {
		w.oracle.violate("state", err.Error())
		e.end(endedFailed)
		return
	}
	s.Entered = shard.MicrosOf(epoch.Add(w.now))
	w.counts.Turns++
	e.m.turning++
	var out flight.State
	var failure error
	w.invoke("index", w.cfg.Index.Timeout, func(ctx context.Context, v *invocation) {
		out, failure = e.m.turn(ctx, v, s)
		v.failed = failure
	}, func(err error) {
		if e.m.turning--; e.ended {
			return
		}
		if err == nil {
			err = failure
		}
		e.answered(out, err)
	})
}

func (e *execution) answered(out flight.State, failure error) {
	step, err := e.Answer(out, failure)
	switch step {
	case emulation.Hold:
		e.hold()
	case emulation.Retry:
		e.after(e.m.again)
	case emulation.Done:
		e.m.w.counts.Transitions++ // Done is a state as well
		if e.Limit() == 0 {
			e.m.w.counts.usage.Transitions++
		}
		e.end(endedWell)
	default:
		if failure == nil {
			e.m.w.oracle.violate("state", err.Error())
		}
		e.end(endedFailed)
	}
}
