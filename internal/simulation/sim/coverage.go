// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// point is something that can happen in a simulated run. If it never happens, no test checks the
// rules about it.
type point struct {
	kind pointKind
	what string
	how  string
}

// pointKind is the kind of a point.
type pointKind string

// The kinds of points.
const (
	aWrite   pointKind = "write"   // a row write, by its name and its outcome
	aStep    pointKind = "step"    // a step of the journal
	aVerdict pointKind = "verdict" // a verdict on an I/O, by its service
	aFailure pointKind = "failure" // a failure that the simulator adds, by its name
	aLoad    pointKind = "load"    // a load that does not return the object to which an event refers
)

// step returns the point for a step of the journal.
func step(s journal.Step) point { return point{aStep, string(s), ""} }

// The outcomes of a row write.
const (
	howApplied   = "applied"
	howRefused   = "refused"
	howThrottled = "throttled"
	howLost      = "answer lost" // the write was applied, and its caller got no answer
)

// coverage counts how often each point happened in a simulated run.
type coverage map[point]int

// strikes decides at random whether a failure happens, and counts it.
func (w *World) strikes(failure string, p float64) bool {
	if !w.dice.chance(p) {
		return false
	}
	w.coverage[point{aFailure, failure, ""}]++
	return true
}

// fate records the outcome of one row write: whether it was carried out, and whether its caller got
// the answer.
type fate struct {
	coverage
	op      shard.Transition
	applied bool
	unheard bool
}

func (f *fate) count(how string) {
	if f.op != 0 {
		f.coverage[point{aWrite, f.op.String(), how}]++
	}
}

// done handles the answer of the service, which may or may not arrive at the caller.
func (f *fate) done(err error) {
	_, refused := shard.AsRefused(err)
	switch {
	case refused:
		f.count(howRefused)
	case errors.Is(err, shard.ErrThrottled):
		f.count(howThrottled)
	case err == nil:
		f.applied = true
		f.count(howApplied)
		f.lost()
	}
}

// silent records that the caller gets no answer. The write may be carried out before or after that.
func (f *fate) silent() {
	if !f.unheard {
		f.unheard = true
		f.lost()
	}
}

func (f *fate) lost() {
	if f.applied && f.unheard {
		f.count(howLost)
	}
}
