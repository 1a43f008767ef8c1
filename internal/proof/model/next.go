package model

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
	x.queue()
	x.receive()
	x.answers()
	for e := range m.Bounds.Execs {
		x.exec(e)
	}
	x.sinkLater()
	x.writesLater()
	x.lease()
	x.dead()
	x.operator()
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

// crash is the state with one crash less, if there is one left.
func (x *step) crash(t State) (State, bool) {
	if x.s.Left.Crashes == 0 {
		return t, false
	}
	t.Left.Crashes = x.s.Left.Crashes - 1
	return t, true
}

func (x *step) duplicate(t State) (State, bool) {
	if x.s.Left.Duplicates == 0 {
		return t, false
	}
	t.Left.Duplicates = x.s.Left.Duplicates - 1
	return t, true
}

func (m *Model) hasOther() bool {
	for _, msg := range m.Bounds.Messages {
		if msg.Other {
			return true
		}
	}
	return false
}

// remove deletes messages. It is unjustified where an event is neither committed nor dead, has no
// dead letter that shows, and no other message carries it.
func (x *step) remove(t *State, set Set) Broken {
	for i := range x.Bounds.Messages {
		if set.Has(i) {
			t.Messages[i] = Gone
		}
	}
	var live Set
	for i, p := range t.Messages {
		if p != Gone {
			live |= 1 << i
		}
	}
	carried := x.keys(live)
	if t.Redrive != None {
		carried |= 1 << t.Redrive
	}
	keys := x.keys(set)
	for k := Key(1); k <= MaxKey; k++ {
		if keys.Has(k) && t.Row.Committed < k && t.Row.Dead != x.rowKey(k) && t.Letters[k] != Parked &&
			!carried.Has(k) {
			return Unjustified
		}
	}
	for i, msg := range x.Bounds.Messages {
		if set.Has(i) && msg.Other && !t.Other {
			return Unjustified
		}
	}
	return 0
}

// done reports whether the row shows that the event is done.
func (m *Model) done(r Row, k Key) bool {
	rk := m.rowKey(k)
	return r.Committed >= rk || r.Dead == rk
}
