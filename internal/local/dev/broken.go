// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"time"

	"github.com/lullhq/lull/internal/fault"
)

// Panel returns the panel with which a user can break this stack on purpose, and repair it.
func (e *Engine) Panel() *fault.Panel { return e.panel }

// Recovery reports how far the stack has recovered from injected failures.
func (e *Engine) Recovery() fault.Recovery {
	state := e.panel.State()
	idle := e.Idle() // check this before counting: otherwise an event that ends in between would count as lost
	report := e.ledger.Report()
	r := fault.Recovery{PanelState: state, Events: report.Events, Dead: report.Dead}
	r.Waiting = r.Events - report.Ended()
	r.Done = r.Events - r.Waiting - r.Dead
	if idle && report.Events == e.ledger.Report().Events && e.Idle() {
		r.Lost = r.Waiting
	}
	e.recovering.Lock()
	defer e.recovering.Unlock()
	if e.recovered.Before(state.Righted) && !e.waitsSince(state.Righted) {
		e.recovered = e.clk.Now()
	}
	if !state.Righted.IsZero() && !e.recovered.Before(state.Righted) {
		r.Recovered = e.recovered
	}
	return r
}

// waitsSince reports whether a queue still has a message that arrived at t or earlier.
func (e *Engine) waitsSince(t time.Time) bool {
	for _, p := range e.pipes {
		for _, q := range p.queues() {
			if came, any := q.Oldest(); any && !came.After(t) {
				return true
			}
		}
	}
	return false
}
