package model

import (
	"sync"
	"testing"
	"time"
)

// explored is one exploration of the design, with the rows that it reaches. Three tests look at it.
type explored struct {
	Result[State]
	rows map[Row]bool
}

var designs = func() map[string]func() explored {
	all := map[string]func() explored{}
	for _, h := range Holdings() {
		if !h.Large {
			all[h.Name] = sync.OnceValue(h.explore)
		}
	}
	return all
}()

func (h Holding) explore() explored {
	rows := map[Row]bool{}
	r := Explore(Model{Rules: h.Rules, Bounds: h.Bounds}, Options{Watch: h.watch(), Stuck: true, Visit: func(s any) {
		if s, ok := s.(State); ok {
			rows[s.Row] = true
		}
	}})
	return explored{r, rows}
}

// TestDesignHolds explores the design to the end in every small bound.
func TestDesignHolds(t *testing.T) {
	t.Parallel()
	for _, h := range Holdings() {
		if h.Large {
			continue
		}
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			holds(t, Model{Rules: h.Rules, Bounds: h.Bounds}, designs[h.Name]().Result)
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
