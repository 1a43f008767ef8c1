// SPDX-License-Identifier: Apache-2.0

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
		x.endLease()
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
	x.lateWrites()
	x.endLease()
	x.deadLetters()
	x.operator()
	x.reset()
	x.prune()
	if m.hasOther() && !s.Other {
		x.addFree(s, Label{Text: "the other document's event is committed"}).To.Other = true
	}
	return x.edges
}

// addFault adds an edge that uses up one unit of a budget. Without budget the edge is ignored.
func (x *step) addFault(what int, t State, l Label) *Edge[State] {
	if x.s.Left[what] == 0 {
		return x.unused()
	}
	t.Left[what]--
	return x.addEdge(t, false, l)
}

// addFreeIf adds a free edge if free is set, and otherwise a fault.
func (x *step) addFreeIf(free bool, what int, t State, l Label) *Edge[State] {
	if free {
		return x.addFree(t, l)
	}
	return x.addFault(what, t, l)
}

// addLateWrite adds a row write whose sender got no answer and that is still on its way.
func (x *step) addLateWrite(t State, w RowWrite, l Label) *Edge[State] {
	if !add(t.Writes[:], w) {
		return x.unused()
	}
	return x.addFault(Crashes, t, l)
}

// addLateRequest adds a request to the sink whose sender no longer waits.
func (x *step) addLateRequest(what int, r Request, l Label) *Edge[State] {
	t := *x.s
	if !add(t.Requests[:], r) {
		return x.unused()
	}
	return x.addFault(what, t, l)
}

func (m *Model) hasOther() bool {
	return slices.ContainsFunc(m.Bounds.Messages, func(msg Message) bool { return msg.Other })
}

// remove deletes messages. Deleting a message is unjustified for an event that is neither committed
// nor dead, has no parked dead letter, and is in no other message.
func (x *step) remove(e *Edge[State], set Set) {
	t := &e.To
	t.move(set, Gone)
	carried := x.keys(t.notGone()) | 1<<t.Redrive
	for k := range (x.keys(set) &^ carried).All() {
		if !x.done(t.Row, k) && t.DeadLetters[k] != Parked {
			e.Broken |= Unjustified
		}
	}
	if !t.Other && x.messagesThat(set, func(msg Message) bool { return msg.Other }) != 0 {
		e.Broken |= Unjustified
	}
}

// done reports whether the row shows that the event is done.
func (m *Model) done(r Row, k Key) bool {
	rk := m.rowKey(k)
	return r.Committed >= rk || r.Dead == rk || r.Taken.Has(rk)
}
