package sim

import (
	"errors"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// point is something that a world can come by. A rule of what no world comes by is not checked.
type point struct {
	kind pointKind
	what string
	how  string
}

// pointKind is what a point is about.
type pointKind string

// The kinds of points.
const (
	aWrite   pointKind = "write"   // of a row, by its name, and what became of it
	aStep    pointKind = "step"    // of the journal
	aVerdict pointKind = "verdict" // on an I/O, by its service
	aFailure pointKind = "failure" // that the simulator adds, by its name
	aLoad    pointKind = "load"    // of what an event refers to, that does not show it
)

// step is the point of a step of the journal.
func step(s journal.Step) point { return point{aStep, string(s), ""} }

// What becomes of a row's write.
const (
	howApplied   = "applied"
	howRefused   = "refused"
	howThrottled = "throttled"
	howLost      = "answer lost" // it was applied, and its caller never heard
)

// coverage is how often a world came by each point.
type coverage map[point]int

// strikes draws whether a failure happens, and counts it.
func (w *World) strikes(failure string, p float64) bool {
	if !w.dice.chance(p) {
		return false
	}
	w.coverage[point{aFailure, failure, ""}]++
	return true
}

// fate sees what becomes of one write: whether it was carried out, and whether its caller heard.
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

// done sees the service's answer, whether it arrives or not.
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

// silent notes that the caller hears nothing, whenever the write is carried out.
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
