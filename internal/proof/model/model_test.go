// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// Several tests use the same explorations. Each exploration runs only once.
var (
	designs = map[string]func() Result[State]{} // the Holdings, except the large ones
	broken  = map[string]func() Result[State]{} // the Changes and the Findings
)

func init() {
	for _, h := range Holdings() {
		designs[h.Name] = sync.OnceValue(func() Result[State] {
			return Explore(h.model(), Options{Watch: h.watch(), Stuck: true})
		})
	}
	for _, c := range append(Changes(), Findings()...) {
		broken[c.Name] = sync.OnceValue(func() Result[State] {
			return Explore(c.model(), Options{Watch: c.Watch, Stuck: c.Stuck})
		})
	}
}

func (h Holding) model() Model { return Model{Rules: h.Rules, Bounds: h.Bounds} }
func (c Change) model() Model  { return Model{Rules: c.Rules, Bounds: c.Bounds} }

func (h Holding) watch() Broken {
	if h.Watch != 0 {
		return h.Watch
	}
	return All
}

// TestDesignHolds explores the design to the end in every small set of bounds. `make model` also
// explores the large ones, one after the other. The large ones take minutes and gigabytes.
func TestDesignHolds(t *testing.T) {
	t.Parallel()
	for _, h := range Holdings() {
		switch {
		case !h.Large:
			t.Run(h.Name, func(t *testing.T) {
				t.Parallel()
				holds(t, h.model(), designs[h.Name]())
			})
		case *large:
			t.Run(h.Name, func(t *testing.T) {
				holds(t, h.model(), Explore(h.model(), Options{Watch: h.watch(), Stuck: true, Report: report(t)}))
			})
		}
	}
}

// holds fails the test if the exploration found a violation, or was not complete.
func holds(t *testing.T, m Model, r Result[State]) {
	t.Helper()
	if len(r.Path) > 0 {
		t.Fatalf("the design falls: %s\n%s\n%s", r, strings.Join(m.Story(r.Path), "\n"), m.ending(r))
	}
	if !r.Full || r.Settled == 0 {
		t.Fatalf("not explored to the end: %s", r)
	}
	t.Log(r)
}

// report prints the speed of long runs as they go.
func report(t *testing.T) func(int, int, time.Duration) {
	return func(states, depth int, elapsed time.Duration) {
		t.Logf("%d states, depth %d, %.0f states/s", states, depth, float64(states)/elapsed.Seconds())
	}
}
