// SPDX-License-Identifier: Apache-2.0

package emulation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// Limits of Step Functions.
const (
	ExpressLimit = 5 * time.Minute // Step Functions ends an Express execution after this time
	maxTurns     = 25_000 / 7      // a Standard execution may have 25,000 events, and a turn adds seven
)

// Execution is one execution of the flight state machine (infra/flight.asl.json):
//
//	Hold (wait until wakeAt) -> Index (turn) -> done? -> Hold | end
//
// An execution that fails, is stopped or reaches its limit does not change its flight: SQS delivers
// the flight's messages again.
type Execution struct {
	retries int
	kind    flight.Kind
	started time.Time
	state   []byte // JSON, the form in which Step Functions passes it between states
	wake    time.Time
	wakeAt  string
	turns   int
	failed  int // how many tries of the current turn have failed
}

// Step is what an execution does next, after a turn.
type Step byte

// What an execution does next.
const (
	Hold   Step = iota // wait until [Execution.Wake], then run the next turn
	Retry              // run the same turn again, after the retry interval
	Done               // the execution has succeeded
	Failed             // the execution has failed
)

// NewExecution returns an execution that begins at started. A turn that fails is retried up to
// retries times. The error says why Step Functions refuses the input.
func NewExecution(s flight.State, started time.Time, retries int) (*Execution, error) {
	e := &Execution{retries: retries, kind: s.Kind, started: started}
	if err := e.keep(s); err != nil {
		return nil, fmt.Errorf("start execution: %w", err)
	}
	return e, nil
}

func (e *Execution) keep(s flight.State) (err error) {
	e.wake, e.wakeAt = s.Wake(), s.WakeAt
	e.state, err = s.Input()
	return err
}

// Input returns the input of the next turn.
func (e *Execution) Input() (s flight.State, err error) {
	if err := json.Unmarshal(e.state, &s); err != nil {
		return s, fmt.Errorf("decode state: %w", err)
	}
	s.Started = shard.MicrosOf(e.started)
	return s, nil
}

// Limit returns how long an execution of this kind may take. Limit returns 0 for a Standard
// execution, whose limit is so long that it does not matter.
func (e *Execution) Limit() time.Duration {
	if e.kind == flight.Express {
		return ExpressLimit
	}
	return 0
}

// Wake returns the time at which the next turn starts.
func (e *Execution) Wake() (time.Time, error) {
	if e.wake.IsZero() {
		return e.wake, fmt.Errorf("wakeAt %q is not a time of RFC 3339", e.wakeAt)
	}
	return e.wake, nil
}

// Answer processes the answer or the error of a turn, and returns the next step. The error says why
// the execution failed.
func (e *Execution) Answer(out flight.State, err error) (Step, error) {
	if err != nil {
		if e.failed++; e.failed > e.retries {
			return Failed, fmt.Errorf("index: %w", err)
		}
		return Retry, nil
	}
	e.failed = 0
	if out.Done {
		return Done, nil
	}
	if e.turns++; e.turns == maxTurns {
		return Failed, fmt.Errorf("more than %d turns", maxTurns)
	}
	if err := e.keep(out); err != nil {
		return Failed, err
	}
	return Hold, nil
}
