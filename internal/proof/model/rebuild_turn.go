package model

import "slices"

// take is a write of the new index with its fence: what is older is refused, what is equal is not.
func (s *RebuildState) take(m Rebuild, k Key, erase bool) {
	switch {
	case k < max(s.New, s.Gone):
	case erase || m.Deletes.Has(k):
		s.New, s.Gone = None, k
	default:
		s.New, s.Gone = k, None
	}
}

// remembers reports whether the new index still knows what it has deleted: the older write of a
// turn is on its way.
func (s *RebuildState) remembers() bool {
	return slices.ContainsFunc(s.Late[:], func(c Copying) bool { return c.Turn && c.Key < s.Gone })
}

// late is a write of a turn to the new index without an answer.
func (s *RebuildState) late(k Key) { add(s.Late[:], Copying{Key: k, Turn: true}) }

// counted is the rebuild that reads the number of missed writes.
func (s *RebuildState) counted() {
	s.Seen = s.Missed
	for i := range s.Late {
		s.Late[i].Early = s.Late[i].Turn
	}
}

// turn appends what one invocation of index can do next.
func (m Rebuild) turn(x *leaving[RebuildState], s RebuildState, i int) {
	me, owner := s.Turns[i], uint8(i)+1
	l := Label{Exec: uint8(i), Key: me.Key}
	if me.Phase != TurnIdle && s.Crashes > 0 {
		t := &x.edge(s, false, l.says("index {f} crashes")).To
		t.Crashes--
		t.Turns[i] = Turning{}
		if me.Phase == TurnApplied && me.untried() {
			t := &x.edge(s, false, l.says("index {f} crashes, and the new index may still get {k}")).To
			t.Crashes--
			t.Turns[i] = Turning{}
			t.late(me.Key)
		}
	}
	switch {
	case me.Phase == TurnIdle && s.Owner == owner:
		x.free(s, l.says("the lease of index {f} runs out")).To.Owner = 0
	case me.Phase == TurnIdle && s.Committed < MaxKey:
		x.free(s, l.says("index {f} reads the health row")).To.Turns[i] = Turning{Phase: TurnBegun, Knows: s.Announced}
	case me.Phase == TurnBegun:
		x.free(s, l.says("index {f} ends without a claim")).To.Turns[i] = Turning{}
		for l.Key = max(s.Committed+1, s.Claimed); l.Key <= MaxKey && s.Owner == 0; l.Key++ {
			t := &x.free(s, l.says("index {f}: CLAIM {k}")).To
			t.Owner, t.Claimed = owner, l.Key
			t.Turns[i] = Turning{Phase: TurnClaimed, Knows: me.Knows, Key: l.Key}
		}
	case me.Phase == TurnClaimed:
		turn := &x.free(s, l.says("the request of index {f} about {k} arrives")).To.Turns[i]
		turn.Phase, turn.IntoNew = TurnSent, s.Named
	case me.Phase == TurnSent:
		t := &x.free(s, l.says("{k} is applied where its name stood for (index {f})")).To
		if t.Turns[i].Phase = TurnApplied; m.Deletes.Has(me.Key) {
			t.Erased = max(s.Erased, me.Key)
		}
		if me.IntoNew {
			t.take(m, me.Key, false)
		} else {
			t.Old = max(t.Old, me.Key)
		}
		if m.Rules.Beside {
			m.beside(x, s, i)
		}
	case me.Phase == TurnApplied:
		m.applied(x, s, i)
	}
}

// untried reports whether the turn must write to the new index, and has not tried it.
func (t Turning) untried() bool { return t.Knows && !t.Copied && !t.Missed }

// beside is a write of the new index by a turn that knows of it, and that has not tried it yet.
func (m Rebuild) beside(x *leaving[RebuildState], s RebuildState, i int) (tried bool) {
	me := s.Turns[i]
	if !me.untried() {
		return false
	}
	t := &x.free(s, Label{Exec: uint8(i), Key: me.Key, Text: "the new index takes {k} (index {f})"}).To
	t.Turns[i].Copied = true
	t.take(m, me.Key, false)
	return true
}

// applied is a turn whose version is in the index that its name stood for: the new index is next.
func (m Rebuild) applied(x *leaving[RebuildState], s RebuildState, i int) {
	me := s.Turns[i]
	l := Label{Exec: uint8(i), Key: me.Key}
	if m.beside(x, s, i) {
		if s.Fails > 0 {
			t := &x.edge(s, false, l.says("the new index does not take {k} (index {f})")).To
			t.Fails--
			t.Turns[i].Missed = true
			t = &x.edge(s, false, l.says("nobody knows whether the new index takes {k} (index {f})")).To
			t.Fails--
			t.Turns[i].Missed = true
			t.late(me.Key)
		}
		return
	}
	late := m.Rules.MarkLate && !me.Committed
	open := s.Announced && (!s.Sealed || m.Rules.NoSeal)
	e := x.free(s, l)
	t, text := &e.To, &e.Label.Text
	turn := &t.Turns[i]
	switch {
	case !me.Missed || me.Marked || m.Rules.Forgotten || late, !open && m.Rules.MarkRefused:
		*text = "index {f}: COMMIT {k}"
		if s.Owner == uint8(i)+1 {
			t.Committed, t.Owner = max(s.Committed, me.Key), 0
		}
		if turn.Committed = true; !(m.Rules.MarkLate && me.Missed && !me.Marked) {
			*turn = Turning{}
		}
	case open:
		*text = "index {f}: MISS {k}: applied"
		turn.Marked = true
		t.Missed = min(s.Missed+1, 3)
		if me.Committed {
			*turn = Turning{}
		}
	default:
		*text = "index {f}: MISS {k}: refused: nothing is committed"
		*turn = Turning{}
	}
}
