// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// graph is a machine with given edges. State 0 is the first state.
type graph struct {
	edges   map[int][]int // from each state; a negative number is an edge that is not free
	settled int
	bad     int
}

func (g graph) Initial() int       { return 0 }
func (g graph) Canon(s int) int    { return s }
func (g graph) Settled(s int) bool { return s == g.settled }
func (g graph) Check(s int) Broken {
	if s == g.bad {
		return Lost
	}
	return 0
}

func (g graph) Next(s int, edges []Edge[int]) []Edge[int] {
	for _, to := range g.edges[s] {
		e := Edge[int]{To: max(to, -to), Free: to > 0}
		e.Label.Text = fmt.Sprintf("%d to %d", s, e.To)
		edges = append(edges, e)
	}
	return edges
}

func walk(r Result[int]) []int {
	at := []int{0}
	for _, s := range r.Path {
		at = append(at, s.To)
	}
	return at
}

// TestCounterexamplesAreShortest compares the length of a story with the distance that a second
// search computes.
func TestCounterexamplesAreShortest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const n = 12
		g := graph{edges: map[int][]int{}, settled: -1, bad: n - 1}
		for from := range n {
			g.edges[from] = rapid.SliceOfN(rapid.IntRange(1, n-1), 0, 3).Draw(t, "edges")
		}
		distance := map[int]int{0: 0}
		for round := 0; round < n; round++ { // slow, but obviously right
			for from, d := range distance {
				for _, to := range g.edges[from] {
					if old, seen := distance[to]; !seen || d+1 < old {
						distance[to] = d + 1
					}
				}
			}
		}
		r := Explore(g, Options{Watch: Lost})
		want, reachable := distance[n-1]
		if got := r.Broken == Lost; got != reachable {
			t.Fatalf("found %t, reachable %t", got, reachable)
		}
		if reachable && len(r.Path) != want {
			t.Fatalf("story of %d steps, shortest %d", len(r.Path), want)
		}
		if !reachable && r.States != len(distance) {
			t.Fatalf("%d states, want %d", r.States, len(distance))
		}
		for i, s := range r.Path {
			if want := fmt.Sprintf("%d to %d", s.From, s.To); s.Label.Text != want {
				t.Fatalf("line %d says %q, want %q", i+1, s.Label.Text, want)
			}
		}
	})
}

func TestStuckStatesAreFoundWithWhereTheyEnd(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		g     graph
		stuck bool
		walk  []int
		round int
	}{
		{"a settled state can be reached", graph{map[int][]int{0: {1, 2}, 1: {3}, 2: {1}}, 3, -1}, false, []int{0}, 0},
		{"a dead end", graph{map[int][]int{0: {1, 2}, 1: {3}, 2: {4}}, 3, -1}, true, []int{0, 2, 4}, 0},
		{"two dead ends", graph{map[int][]int{0: {1, 2}}, 3, -1}, true, []int{0, 1}, 0},
		{
			"a dead end behind an earlier state",
			graph{map[int][]int{0: {1, 2}, 1: {4}, 2: {1}}, 3, -1},
			true,
			[]int{0, 1, 4},
			0,
		},
		{"only a fault leads on", graph{map[int][]int{0: {1}, 1: {-3}}, 3, -1}, true, []int{0, 1}, 0},
		{"a fault leads into a dead end", graph{map[int][]int{0: {3, -1}, 1: {2}}, 3, -1}, true, []int{0, 1, 2}, 0},
		{"a circle", graph{map[int][]int{0: {3, -1}, 1: {2}, 2: {4}, 4: {2}}, 3, -1}, true, []int{0, 1, 2, 4, 2}, 3},
		{"a circle with a way out", graph{map[int][]int{0: {1}, 1: {2}, 2: {1, 3}}, 3, -1}, false, []int{0}, 0},
		{
			"a circle that ends in another one",
			graph{map[int][]int{0: {1}, 1: {0, 2}, 2: {4}, 4: {2}}, 3, -1},
			true,
			[]int{0, 1, 2, 4, 2},
			3,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := Explore(tt.g, Options{Stuck: true})
			if r.Stuck != tt.stuck || r.Round != tt.round || fmt.Sprint(walk(r)) != fmt.Sprint(tt.walk) {
				t.Errorf("got stuck %t, round %d, %v; want %t, %d, %v", r.Stuck, r.Round, walk(r), tt.stuck, tt.round,
					tt.walk)
			}
		})
	}
}

// TestStatesAreNumberedLikeAMap gives many states the same hash. The explorer must still number
// them like a map does.
func TestStatesAreNumberedLikeAMap(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	x := newExplorer[int](graph{}, Options{})
	x.hash = func(s int) uint64 { return uint64(s / 3 * 4) }
	twin := map[int]uint32{}
	for range 60_000 {
		s := random.IntN(40_000)
		n, fresh := x.add(s, 0)
		want, known := twin[s]
		if fresh == known || known && n != want {
			t.Fatalf("%v: number %d, fresh %t; want %d, %t", s, n, fresh, want, !known)
		}
		twin[s] = n
	}
	for s, n := range twin {
		if *x.states.at(int(n)) != s {
			t.Fatalf("number %d is %v, want %v", n, *x.states.at(int(n)), s)
		}
	}
}

// TestCanonicalStatesAreCanonical takes long random walks. Canon must not change a canonical state.
// The order of executions and of late requests must not matter.
func TestCanonicalStatesAreCanonical(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 2))
	for _, h := range Holdings() {
		m := Model{Bounds: h.Bounds}
		s := m.Canon(m.Initial())
		for range 2000 {
			edges := m.Next(s, nil)
			if len(edges) == 0 {
				s = m.Canon(m.Initial())
				continue
			}
			s = m.Canon(edges[random.IntN(len(edges))].To)
			if again := m.Canon(s); again != s {
				t.Fatalf("%s: %+v becomes %+v", h.Name, s, again)
			}
			turned := s
			turned.Execs[0], turned.Execs[1] = s.Execs[1], s.Execs[0]
			turned.Requests[0], turned.Requests[1] = s.Requests[1], s.Requests[0]
			if m.Canon(turned) != s && s.Execs[0].Messages != s.Execs[1].Messages {
				t.Fatalf("%s: %+v turned becomes %+v", h.Name, s, m.Canon(turned))
			}
		}
	}
}
