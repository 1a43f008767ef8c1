package model

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"
)

// Broken is a set of broken promises: what an edge or a state violates.
type Broken uint32

// Edge leads from a state to a next one.
type Edge[S comparable] struct {
	To S
	// Label says what happened, in the words of the design.
	Label Label
	// Free marks what happens by itself. Faults, operators and everything else that takes from a
	// budget are not free: the search for stuck states goes without them.
	Free bool
	// Broken is what this step violates, beyond what the state it leads to does.
	Broken Broken
}

// leaving collects the edges that leave a state.
type leaving[S comparable] struct {
	edges []Edge[S]
	waste Edge[S] // what the budget does not allow
}

// edge adds an edge to t and returns it: t is changed there, until the next edge is added.
func (x *leaving[S]) edge(t S, free bool, l Label) *Edge[S] {
	x.edges = append(x.edges, Edge[S]{To: t, Label: l, Free: free})
	return &x.edges[len(x.edges)-1]
}

// free adds what happens by itself.
func (x *leaving[S]) free(t S, l Label) *Edge[S] { return x.edge(t, true, l) }

// none is an edge that nobody follows.
func (x *leaving[S]) none() *Edge[S] {
	x.waste = Edge[S]{}
	return &x.waste
}

// Label is an action: a text with placeholders, filled in when a story is told. The explorer never
// formats one.
type Label struct {
	By       string // what stands before the text: who acts
	Text     string
	Then     string // and behind it
	Exec     uint8  // {f}: the flight's execution, by its place in the state
	Key      Key    // {k}: a version
	Messages Set    // {m}: messages
}

// tell is the label's text with the names of an execution, a version and messages.
func (l Label) tell(exec, key, messages string) string {
	return strings.NewReplacer("{f}", exec, "{k}", key, "{m}", messages).Replace(l.By + l.Text + l.Then)
}

// says is the label with another text.
func (l Label) says(text string) Label {
	l.Text = text
	return l
}

// Machine is something to explore. Next appends the edges that leave a state; Canon picks one of
// the states that differ only in names (tokens, the order of executions); both are pure.
type Machine[S comparable] interface {
	Initial() S
	Next(s S, edges []Edge[S]) []Edge[S]
	Canon(s S) S
	// Check says what a state violates.
	Check(s S) Broken
	// Settled reports that nothing is under way and nothing is left behind.
	Settled(s S) bool
}

// Options of one exploration.
type Options struct {
	Watch  Broken // stop at the first of these
	Stuck  bool   // look for states from which no settled one can be reached by free edges
	Report func(states, depth int, elapsed time.Duration)
}

// Step is one line of a counterexample.
type Step[S comparable] struct {
	From  S
	To    S
	Raw   S // To, before it was made canonical
	Label Label
}

// Result of one exploration.
type Result[S comparable] struct {
	States  int
	Edges   int
	Depth   int // the longest shortest path
	Settled int // settled states
	Broken  Broken
	Stuck   bool
	Round   int       // where Stuck goes round for ever: the last step leads back to before this line (from 1)
	Path    []Step[S] // the shortest counterexample; empty where nothing broke
	Full    bool      // every reachable state was seen
	Elapsed time.Duration
}

// Rate is states per second.
func (r Result[S]) Rate() float64 { return float64(r.States) / max(r.Elapsed.Seconds(), 1e-9) }

// String sums the exploration up.
func (r Result[S]) String() string {
	return fmt.Sprintf("%d states, %d edges, depth %d, %d settled, %s, %.0f states/s",
		r.States, r.Edges, r.Depth, r.Settled, r.Elapsed.Round(time.Millisecond), r.Rate())
}

// ways are the free edges of a state.
func (x *explorer[S]) ways(at uint32) []uint32 { return x.free[x.starts[at]:x.starts[at+1]] }

// explorer is a breadth-first search: states are numbered in the order in which they were found, so
// that the first violation has the shortest story.
type explorer[S comparable] struct {
	m       Machine[S]
	o       Options
	states  list[S]
	parents []uint32
	hash    func(S) uint64
	numbers map[uint64]uint32 // of states, by hash: so a state is there once, in the list
	free    []uint32          // free edges, one state after the other
	starts  []uint64          // where the edges of a state begin
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

// add returns the number of a state, and whether it is new. A state whose hash belongs to another
// one has the next hash that is free.
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

// search returns the first state that breaks something watched. The violation of an edge counts for
// the state it leads to, which is reported even if it was known before.
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
				if !fresh { // tell the story through this edge
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

// path tells how a state was reached. Labels are not kept: they are found again by taking the steps
// once more. The last step is the one that breaks something, where anything broke.
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

// steps turns a chain of states into steps, each with the label of the first edge that may be it.
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
