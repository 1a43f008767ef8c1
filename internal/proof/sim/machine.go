package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/proof/price"
	"github.com/lullhq/lull/internal/shard"
)

// machine runs executions of the flight state machine (infra/flight.asl.json): Hold until wakeAt,
// Index, done or Hold again. An execution that fails, is stopped or reaches its limit leaves its
// flight as it is.
type machine struct {
	w       *World
	limit   time.Duration // 0 for none
	again   time.Duration // the wait after a turn whose outcome is unknown
	turn    func(ctx context.Context, v *invocation, s flight.State) (flight.State, error)
	running int
}

const (
	ambiguousTries = 2 // retries after unknown outcomes, of one turn
	refusedTries   = 10
	refusedWait    = 10 * time.Second
)

// execution is one of them.
type execution struct {
	m       *machine
	state   []byte // JSON, as between the states of Step Functions
	started time.Duration
	ended   bool
	unknown int // turns of this state without an answer
	refused int
}

var _ flight.Launcher = (*machine)(nil)

// Start is StartExecution.
func (m *machine) Start(_ context.Context, s flight.State) error {
	input, err := encode(s)
	if err != nil {
		return err
	}
	w := m.w
	w.counts.Executions++
	if m.limit > 0 {
		w.counts.usage.ExpressStarts++
	}
	if w.dice.chance(w.rates.FlightLost) {
		w.trace.mark("execution lost", "", 0)
		return nil
	}
	m.run(input)
	if w.dice.chance(w.rates.FlightTwice) {
		m.run(input)
	}
	return nil
}

func (m *machine) run(input []byte) {
	w := m.w
	e := &execution{m: m, state: input, started: w.now}
	m.running++
	if m.limit > 0 {
		w.after(m.limit, func() { e.end("limit") })
	}
	if w.dice.chance(w.rates.StopFlight) {
		w.after(w.dice.upTo(30*time.Second), func() { e.end("stopped") })
	}
	e.hold()
}

// end ends the execution. A turn that runs goes on; what it answers is lost.
func (e *execution) end(why string) {
	if e.ended {
		return
	}
	e.ended = true
	e.m.running--
	if e.m.limit > 0 {
		e.m.w.counts.usage.ExpressGBSecs += price.ExpressGBSeconds(e.m.w.now - e.started)
	}
	if why != "" {
		e.m.w.trace.mark("execution "+why, "", 0)
	}
}

func (e *execution) decode() (s flight.State, ok bool) {
	if err := json.Unmarshal(e.state, &s); err != nil {
		e.m.w.oracle.violate("state", "state cannot be read: "+err.Error())
		return s, false
	}
	s.Started = shard.MicrosOf(epoch.Add(e.started))
	return s, true
}

// hold is the Wait.
func (e *execution) hold() {
	w := e.m.w
	s, ok := e.decode()
	if !ok || s.Wake().IsZero() {
		e.end("failed")
		return
	}
	w.counts.Transitions += 3 // Hold, Index, Left
	if e.m.limit == 0 {
		w.counts.usage.Transitions += 3 // Express is billed by its time
	}
	wait := s.Wake().Sub(epoch) - w.now
	if wait > 0 {
		wait = max(wait-w.dice.upTo(w.rates.WakeEarly), 0) + w.travel(fault.States)
	}
	w.after(wait, func() {
		if !e.ended {
			e.index()
		}
	})
}

// index is one turn: refused by Lambda before it ran, or with an outcome that may be unknown.
func (e *execution) index() {
	w := e.m.w
	if w.dice.chance(w.rates.InvokeRefuse) && e.refused < refusedTries {
		e.refused++
		w.after(w.dice.upTo(min(time.Second<<e.refused, refusedWait)), func() {
			if !e.ended {
				e.index()
			}
		})
		return
	}
	e.refused = 0
	s, ok := e.decode()
	if !ok {
		e.end("failed")
		return
	}
	w.counts.Turns++
	var out flight.State
	var failure error
	w.invoke("index", w.cfg.Index.Timeout, func(ctx context.Context, v *invocation) {
		out, failure = e.m.turn(ctx, v, s)
	}, func(err error) {
		if e.ended {
			return
		}
		if err == nil {
			err = failure
		}
		e.answered(out, err)
	})
}

func (e *execution) answered(out flight.State, err error) {
	w := e.m.w
	if err != nil {
		if e.unknown++; e.unknown > ambiguousTries {
			e.end("failed")
			return
		}
		w.after(e.m.again, func() {
			if !e.ended {
				e.index()
			}
		})
		return
	}
	e.unknown = 0
	if out.Done {
		e.end("")
		return
	}
	state, err := encode(out)
	if err != nil {
		w.oracle.violate("state", err.Error())
		e.end("failed")
		return
	}
	e.state = state
	e.hold()
}

func encode(s flight.State) ([]byte, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	if len(b) > memory.MaxStateBytes {
		return nil, fmt.Errorf("state has %d bytes, at most %d are allowed", len(b), memory.MaxStateBytes)
	}
	return b, nil
}
