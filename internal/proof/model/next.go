package model

import "slices"

// step collects the edges that leave one state.
type step struct {
	*Model
	s     *State
	edges []Edge[State]
}

// Next appends the edges that leave s.
func (m Model) Next(s State, edges []Edge[State]) []Edge[State] {
	x := step{Model: &m, s: &s, edges: edges}
	x.outage()
	if s.Down {
		return x.edges
	}
	x.restore()
	if s.Restored && m.Bounds.Stopped {
		x.sinkLater()
		x.lease()
		return x.edges
	}
	x.queue()
	x.receive()
	x.answers()
	for e := range m.Bounds.Execs {
		x.exec(e)
	}
	x.sinkLater()
	x.source()
	x.writesLater()
	x.lease()
	x.dead()
	x.operator()
	x.reset()
	x.prune()
	if m.hasOther() && !s.Other {
		t := s
		t.Other = true
		x.free(t, Label{Text: "the other document's event is committed"})
	}
	return x.edges
}

func (x *step) free(t State, l Label) {
	x.edges = append(x.edges, Edge[State]{To: t, Label: l, Free: true})
}

func (x *step) edge(t State, free bool, b Broken, l Label) {
	x.edges = append(x.edges, Edge[State]{To: t, Label: l, Free: free, Broken: b})
}

// spend is the state with one less of what the budget still allows, if it does.
func (x *step) spend(t State, what int) (State, bool) {
	if x.s.Left[what] == 0 {
		return t, false
	}
	t.Left[what] = x.s.Left[what] - 1
	return t, true
}

// fault adds what happens at the cost of one more of the budget, if it still allows that.
func (x *step) fault(what int, t State, l Label) {
	if t, ok := x.spend(t, what); ok {
		x.edge(t, false, 0, l)
	}
}

// late adds a row write whose sender got no answer, and that is still on its way.
func (x *step) late(t State, w RowWrite, l Label) {
	if add(t.Writes[:], w) {
		x.fault(Crashes, t, l)
	}
}

func (m *Model) hasOther() bool {
	return slices.ContainsFunc(m.Bounds.Messages, func(msg Message) bool { return msg.Other })
}

// remove deletes messages. It is unjustified where an event is neither committed nor dead, has no
// dead letter that shows, and no other message carries it.
func (x *step) remove(t *State, set Set) Broken {
	for i := range set.All() {
		t.Messages[i] = Gone
	}
	carried := x.keys(t.notGone()) | 1<<t.Redrive
	for k := range (x.keys(set) &^ carried).Up() {
		if t.Row.Committed < k && t.Row.Dead != x.rowKey(k) && t.DeadLetters[k] != Parked {
			return Unjustified
		}
	}
	if !t.Other && x.which(set, func(msg Message) bool { return msg.Other }) != 0 {
		return Unjustified
	}
	return 0
}

// done reports whether the row shows that the event is done.
func (m *Model) done(r Row, k Key) bool {
	rk := m.rowKey(k)
	return r.Committed >= rk || r.Dead == rk
}
