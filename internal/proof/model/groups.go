// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// Groups is the use of `attempts` (design section 8). One flight has eight documents, and the first
// document kills every request that carries it, or the whole invocation. The good documents must be
// written nevertheless. After a killed invocation, the next turn begins when the leases have ended.
// No step is random: a fixed order that fails would fail for ever.
type Groups struct {
	Rules GroupRules
	// Kills says that the bad document kills the invocation, not only the request.
	Kills bool
}

// GroupRules are changes to the design. The zero value is the design.
type GroupRules struct {
	OneGroup bool // index does not read `attempts`
	InOrder  bool // documents that are sent alone keep the order of the flight, however often each was tried
}

const (
	groupDocs   = 8
	groupBad    = 0 // the first document is the bad one
	maxAttempts = 5 // the highest number of attempts that is counted
)

// GroupState is the state between two requests.
type GroupState struct {
	Done     Set
	Attempts [groupDocs]uint8
	Turn     [groupDocs]Set // the remaining groups of this turn, in order
}

var _ Machine[GroupState] = Groups{}

// Initial returns the state in which no document was tried.
func (g Groups) Initial() GroupState { return GroupState{} }

// Canon returns the state unchanged.
func (g Groups) Canon(s GroupState) GroupState { return s }

// Check returns nothing. The only possible fault of this machine is that it never ends.
func (g Groups) Check(GroupState) Broken { return 0 }

// Settled reports whether all good documents are committed.
func (g Groups) Settled(s GroupState) bool { return s.Done|1<<groupBad == 1<<groupDocs-1 }

// Next appends the next group, or the next turn of the flight.
func (g Groups) Next(s GroupState, edges []Edge[GroupState]) []Edge[GroupState] {
	x := leaving[GroupState]{edges: edges}
	group := s.Turn[0]
	e := x.addFree(s, Label{Messages: group})
	t, text := &e.To, &e.Label.Text
	if group == 0 {
		t.Turn, *text = g.rounds(s), "the leases have ended: index begins a turn"
		return x.edges
	}
	copy(t.Turn[:], s.Turn[1:])
	t.Turn[groupDocs-1] = 0
	for d := range group.All() {
		t.Attempts[d] = min(t.Attempts[d]+1, maxAttempts)
		if !group.Has(groupBad) {
			t.Attempts[d] = 0
		}
	}
	switch {
	case !group.Has(groupBad):
		t.Done |= group
		*text = "documents {m}: claimed, written, committed"
	case g.Kills:
		t.Turn = [groupDocs]Set{}
		*text = "documents {m}: claimed; the invocation is killed"
	default:
		*text = "documents {m}: claimed; the request gets no answer"
	}
	return x.edges
}

// rounds returns the groups of a turn. The first group has all documents that were tried less than
// twice. After the first group come quarters, then single documents, the least tried first.
func (g Groups) rounds(s GroupState) [groupDocs]Set {
	var out [groupDocs]Set
	tried := func(from, to uint8) (set Set) {
		for d, times := range s.Attempts {
			if !s.Done.Has(d) && times >= from && times <= to {
				set |= 1 << d
			}
		}
		return set
	}
	if g.Rules.OneGroup {
		out[0] = tried(0, maxAttempts)
		return out
	}
	add(out[:], tried(0, 1))
	for part := range slices.Chunk(slices.Collect(tried(2, 2).All()), groupDocs/4) {
		var quarter Set
		for _, d := range part {
			quarter |= 1 << d
		}
		add(out[:], quarter)
	}
	ranges := [][2]uint8{{3, 3}, {4, 4}, {5, maxAttempts}}
	if g.Rules.InOrder {
		ranges = [][2]uint8{{3, maxAttempts}}
	}
	for _, r := range ranges {
		for d := range tried(r[0], r[1]).All() {
			add(out[:], 1<<d)
		}
	}
	return out
}
