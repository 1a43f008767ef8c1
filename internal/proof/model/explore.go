// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"
)

// Broken is a set of violations: the promises that an edge or a state breaks.
type Broken uint32

// Edge leads from one state to the next state.
type Edge[S comparable] struct {
	To S
	// Label says what happened, in the words of the design.
	Label Label
	// Free is set if the step happens without a fault and without an operator. All other steps use
	// up a budget. The search for stuck states follows only free edges.
	Free bool
	// Broken is what the step itself violates, in addition to what the state To violates.
	Broken Broken
}

// leaving collects the edges that leave a state.
type leaving[S comparable] struct {
	edges []Edge[S]
	waste Edge[S] // takes the edges that the budget does not allow
}

// addEdge adds an edge to t and returns it. The caller may change the edge until the next one is
// added.
func (x *leaving[S]) addEdge(t S, free bool, l Label) *Edge[S] {
	x.edges = append(x.edges, Edge[S]{To: t, Label: l, Free: free})
	return &x.edges[len(x.edges)-1]
}

// addFree adds a free edge: a step without a fault and without an operator.
func (x *leaving[S]) addFree(t S, l Label) *Edge[S] { return x.addEdge(t, true, l) }

// unused returns an edge that the exploration ignores.
func (x *leaving[S]) unused() *Edge[S] {
	x.waste = Edge[S]{}
	return &x.waste
}

// Label describes an action. The text of a label has placeholders, which a story fills in. The
// explorer itself never formats a label.
type Label struct {
	By       string // the beginning of the text: the process that acts
	Text     string
	Then     string // the end of the text
	Exec     uint8  // {f}: the flight's execution, as its index in the state
	Key      Key    // {k}: a version
	Messages Set    // {m}: messages
}

// render returns the label's text with the names of an execution, a version and messages.
func (l Label) render(exec, key, messages string) string {
	return strings.NewReplacer("{f}", exec, "{k}", key, "{m}", messages).Replace(l.By + l.Text + l.Then)
}

// withText returns the label with another text.
func (l Label) withText(text string) Label {
	l.Text = text
	return l
}

// Machine is a state machine to explore. Next appends the edges that leave a state. Canon returns
// one of the states that differ only in names or in the order of executions. Next and Canon are
// pure functions.
type Machine[S comparable] interface {
	Initial() S
	Next(s S, edges []Edge[S]) []Edge[S]
	Canon(s S) S
	// Check returns what a state violates.
	Check(s S) Broken
	// Settled reports whether nothing is under way and nothing is left behind.
	Settled(s S) bool
}

// Options configure one exploration.
type Options struct {
	Watch  Broken // the exploration stops at the first of these violations
	Stuck  bool   // look for states from which free edges reach no settled state
	Report func(states, depth int, elapsed time.Duration)
}

// Step is one line of a counterexample.
type Step[S comparable] struct {
	From  S
	To    S
	Raw   S // the target state before Canon
	Label Label
}

// Result is the outcome of one exploration.
type Result[S comparable] struct {
	States  int
	Edges   int
	Depth   int // the largest number of steps from the first state to any state
	Settled int // the number of settled states
	Broken  Broken
	Stuck   bool
	Round   int       // if a stuck story repeats for ever: the line (from 1) to which its last step returns
	Path    []Step[S] // the shortest counterexample; empty if nothing broke
	Full    bool      // the exploration visited every reachable state
	Elapsed time.Duration
}

// Rate returns the number of states per second.
func (r Result[S]) Rate() float64 { return float64(r.States) / max(r.Elapsed.Seconds(), 1e-9) }

// String summarizes the exploration.
func (r Result[S]) String() string {
	return fmt.Sprintf("%d states, %d edges, depth %d, %d settled, %s, %.0f states/s",
		r.States, r.Edges, r.Depth, r.Settled, r.Elapsed.Round(time.Millisecond), r.Rate())
}

// freeEdges returns the targets of the free edges of a state.
func (x *explorer[S]) freeEdges(at uint32) []uint32 { return x.free[x.starts[at]:x.starts[at+1]] }

// explorer is a breadth-first search. States are numbered in the order in which they were found, so
// that the first violation has the shortest story.
type explorer[S comparable] struct {
	m       Machine[S]
	o       Options
	states  list[S]
	parents []uint32
	hash    func(S) uint64
	numbers map[uint64]uint32 // the number of each state, by its hash; the list holds each state once
	free    []uint32          // targets of free edges, one state after the other
	starts  []uint64          // where the edges of each state begin in free
	result  Result[S]
}

// Explore visits every reachable state of m.
func Explore[S comparable](m Machine[S], o Options) Result[S] {
	x := newExplorer(m, o)
	began := time.Now()
	bad, found := x.search(began)
	x.result.States = x.states.size()
	switch {
	case found:
		x.result.Path = x.path(bad)
	case x.result.Full && o.Stuck:
		x.stuck()
	}
	x.result.Elapsed = time.Since(began)
	return x.result
}

func newExplorer[S comparable](m Machine[S], o Options) *explorer[S] {
	seed := maphash.MakeSeed()
	return &explorer[S]{
		m: m, o: o, hash: func(s S) uint64 { return maphash.Comparable(seed, s) }, numbers: map[uint64]uint32{},
	}
}

// add returns the number of a state, and whether the state is new. If another state has the same
// hash, the next free hash is taken.
func (x *explorer[S]) add(s S, parent uint32) (n uint32, fresh bool) {
	hash := x.hash(s)
	for n, taken := x.numbers[hash]; taken; n, taken = x.numbers[hash] {
		if *x.states.at(int(n)) == s {
			return n, false
		}
		hash++
	}
	n = x.append(s, parent)
	x.numbers[hash] = n
	return n, true
}

func (x *explorer[S]) append(s S, parent uint32) uint32 {
	x.states.add(s)
	x.parents = append(x.parents, parent)
	return uint32(len(x.parents) - 1)
}

// search returns the first state that violates something watched. A violation of an edge counts for
// the edge's target, even if that state was found before.
func (x *explorer[S]) search(began time.Time) (uint32, bool) {
	root := x.m.Canon(x.m.Initial())
	x.add(root, 0)
	if b := x.m.Check(root) & x.o.Watch; b != 0 {
		x.result.Broken = b
		return 0, true
	}
	var edges []Edge[S]
	levelEnd := 1
	for at := 0; at < x.states.size(); at++ {
		if at == levelEnd {
			levelEnd = x.states.size()
			x.result.Depth++
		}
		if x.o.Report != nil && at&(1<<20-1) == 1<<20-1 {
			x.o.Report(x.states.size(), x.result.Depth, time.Since(began))
		}
		s := *x.states.at(at)
		if x.m.Settled(s) {
			x.result.Settled++
		}
		if x.o.Stuck {
			x.starts = append(x.starts, uint64(len(x.free)))
		}
		edges = x.m.Next(s, edges[:0])
		x.result.Edges += len(edges)
		for i := range edges {
			to := x.m.Canon(edges[i].To)
			n, fresh := x.add(to, uint32(at))
			broken := edges[i].Broken
			if fresh {
				broken |= x.m.Check(to)
			}
			if broken &= x.o.Watch; broken != 0 {
				x.result.Broken = broken
				if !fresh { // the story must end with this edge
					n = x.append(to, uint32(at))
				}
				return n, true
			}
			if x.o.Stuck && edges[i].Free && n != uint32(at) {
				x.free = append(x.free, n)
			}
		}
	}
	x.result.Full = true
	return 0, false
}

// path returns the steps that lead to a state. Labels are not stored, so path takes the steps again
// to find them. If anything broke, the last step is the one that breaks it.
func (x *explorer[S]) path(n uint32) []Step[S] {
	chain := []uint32{n}
	for at := n; at != 0; chain = append(chain, at) {
		at = x.parents[at]
	}
	slices.Reverse(chain)
	return x.steps(chain, func(e Edge[S], last bool) bool {
		return !last || x.result.Broken == 0 || (e.Broken|x.m.Check(x.m.Canon(e.To)))&x.result.Broken != 0
	})
}

// steps turns a chain of states into steps. Each step gets the label of the first edge that may
// returns true for.
func (x *explorer[S]) steps(chain []uint32, may func(e Edge[S], last bool) bool) []Step[S] {
	var steps []Step[S]
	for i := range len(chain) - 1 {
		step := Step[S]{From: *x.states.at(int(chain[i])), To: *x.states.at(int(chain[i+1]))}
		edges := x.m.Next(step.From, nil)
		found := slices.IndexFunc(edges, func(e Edge[S]) bool {
			return x.m.Canon(e.To) == step.To && may(e, i == len(chain)-2)
		})
		step.Raw, step.Label = edges[found].To, edges[found].Label
		steps = append(steps, step)
	}
	return steps
}
