package model

import (
	"testing"
	"time"
)

// TestDesignHolds explores the design to the end in every small bound.
func TestDesignHolds(t *testing.T) {
	t.Parallel()
	for _, h := range Holdings() {
		if h.Large {
			continue
		}
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			hold(t, Model{Rules: h.Rules, Bounds: h.Bounds}, h.watch())
		})
	}
}

// TestDesignHoldsInLargeBounds is what `make model` runs.
func TestDesignHoldsInLargeBounds(t *testing.T) {
	if !*large {
		t.Skip("needs minutes and gigabytes: make model")
	}
	for _, h := range Holdings() {
		if h.Large {
			t.Run(h.Name, func(t *testing.T) {
				hold(t, Model{Rules: h.Rules, Bounds: h.Bounds}, h.watch())
			})
		}
	}
}

func (h Holding) watch() Broken {
	if h.Watch != 0 {
		return h.Watch
	}
	return All
}

// report prints the speed of long runs as they go.
func report(t *testing.T) func(int, int, time.Duration) {
	return func(states, depth int, elapsed time.Duration) {
		t.Logf("%d states, depth %d, %.0f states/s", states, depth, float64(states)/elapsed.Seconds())
	}
}
