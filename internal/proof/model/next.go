package model

import "slices"

// step collects the edges that leave one state.
type step struct {
	*Model
	leaving[State]
	s *State
}

// Next appends the edges that leave s.
func (m Model) Next(s State, edges []Edge[State]) []Edge[State] {
	x := step{Model: &m, s: &s, leaving: leaving[State]{edges: edges}}
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
		x.free(s, Label{Text: "the other document's event is committed"}).To.Other = true
	}
	return x.edges
}

// fault adds what happens at the cost of one more of the budget, if it still allows that.
func (x *step) fault(what int, t State, l Label) *Edge[State] {
	if x.s.Left[what] == 0 {
		return x.none()
	}
	t.Left[what]--
	return x.edge(t, false, l)
}

// unless adds what happens by itself where it must, and otherwise as a fault.
func (x *step) unless(must bool, what int, t State, l Label) *Edge[State] {
	if must {
		return x.free(t, l)
	}
	return x.fault(what, t, l)
}

// late adds a row write whose sender got no answer, and that is still on its way.
func (x *step) late(t State, w RowWrite, l Label) *Edge[State] {
	if !add(t.Writes[:], w) {
		return x.none()
	}
	return x.fault(Crashes, t, l)
}

// lateRequest adds a request to the sink that nobody waits for.
func (x *step) lateRequest(what int, r Request, l Label) *Edge[State] {
	t := *x.s
	if !add(t.Requests[:], r) {
		return x.none()
	}
	return x.fault(what, t, l)
}

func (m *Model) hasOther() bool {
	return slices.ContainsFunc(m.Bounds.Messages, func(msg Message) bool { return msg.Other })
}

// remove deletes messages. It is unjustified where an event is neither committed nor dead, has no
// dead letter that shows, and no other message carries it.
func (x *step) remove(e *Edge[State], set Set) {
	t := &e.To
	t.put(set, Gone)
	carried := x.keys(t.notGone()) | 1<<t.Redrive
	for k := range (x.keys(set) &^ carried).All() {
		if !x.done(t.Row, k) && t.DeadLetters[k] != Parked {
			e.Broken |= Unjustified
		}
	}
	if !t.Other && x.which(set, func(msg Message) bool { return msg.Other }) != 0 {
		e.Broken |= Unjustified
	}
}

// done reports whether the row shows that the event is done.
func (m *Model) done(r Row, k Key) bool {
	rk := m.rowKey(k)
	return r.Committed >= rk || r.Dead == rk || r.Taken.Has(rk)
}
