// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// take is a write to the new index with a fence. The index refuses an older version, and accepts an
// equal one.
func (s *RebuildState) take(m Rebuild, k Key, erase bool) {
	switch {
	case k < max(s.New, s.Gone):
	case erase || m.Deletes.Has(k):
		s.New, s.Gone = None, k
	default:
		s.New, s.Gone = k, None
	}
}

// mustRemember reports whether the new index still knows its last delete, because an older write of
// a turn is on its way.
func (s *RebuildState) mustRemember() bool {
	return slices.ContainsFunc(s.Late[:], func(c Copying) bool { return c.Turn && c.Key < s.Gone })
}

// addLate adds a turn's write to the new index that gets no answer.
func (s *RebuildState) addLate(k Key) { add(s.Late[:], Copying{Key: k, Turn: true}) }

// readMissed lets the rebuild read the number of missed writes.
func (s *RebuildState) readMissed() {
	s.Seen = s.Missed
	for i := range s.Late {
		s.Late[i].Early = s.Late[i].Turn
	}
}

// turn appends the next steps of one invocation of index.
func (m Rebuild) turn(x *leaving[RebuildState], s RebuildState, i int) {
	me, owner := s.Turns[i], uint8(i)+1
	l := Label{Exec: uint8(i), Key: me.Key}
	if me.Phase != TurnIdle && s.Crashes > 0 {
		t := &x.addEdge(s, false, l.withText("index {f} crashes")).To
		t.Crashes--
		t.Turns[i] = Turning{}
		if me.Phase == TurnApplied && me.untried() {
			t := &x.addEdge(s, false, l.withText("index {f} crashes, and the new index may still get {k}")).To
			t.Crashes--
			t.Turns[i] = Turning{}
			t.addLate(me.Key)
		}
	}
	switch {
	case me.Phase == TurnIdle && s.Owner == owner:
		x.addFree(s, l.withText("the lease of index {f} runs out")).To.Owner = 0
	case me.Phase == TurnIdle && s.Committed < MaxKey:
		x.addFree(s, l.withText("index {f} reads the health row")).To.Turns[i] = Turning{Phase: TurnBegun, Knows: s.Announced}
	case me.Phase == TurnBegun:
		x.addFree(s, l.withText("index {f} ends without a claim")).To.Turns[i] = Turning{}
		for l.Key = max(s.Committed+1, s.Claimed); l.Key <= MaxKey && s.Owner == 0; l.Key++ {
			t := &x.addFree(s, l.withText("index {f}: CLAIM {k}")).To
			t.Owner, t.Claimed = owner, l.Key
			t.Turns[i] = Turning{Phase: TurnClaimed, Knows: me.Knows, Key: l.Key}
		}
	case me.Phase == TurnClaimed:
		turn := &x.addFree(s, l.withText("the request of index {f} about {k} arrives")).To.Turns[i]
		turn.Phase, turn.IntoNew = TurnSent, s.Named
	case me.Phase == TurnSent:
		t := &x.addFree(s, l.withText("{k} is applied where its name stood for (index {f})")).To
		if t.Turns[i].Phase = TurnApplied; m.Deletes.Has(me.Key) {
			t.Erased = max(s.Erased, me.Key)
		}
		if me.IntoNew {
			t.take(m, me.Key, false)
		} else {
			t.Old = max(t.Old, me.Key)
		}
		if m.Rules.Beside {
			m.writeNew(x, s, i)
		}
	case me.Phase == TurnApplied:
		m.afterApplied(x, s, i)
	}
}

// untried reports whether the turn must still write to the new index.
func (t Turning) untried() bool { return t.Knows && !t.Copied && !t.Missed }

// writeNew is the write to the new index by a turn that knows of the rebuild. writeNew reports
// whether the turn had to write.
func (m Rebuild) writeNew(x *leaving[RebuildState], s RebuildState, i int) (tried bool) {
	me := s.Turns[i]
	if !me.untried() {
		return false
	}
	t := &x.addFree(s, Label{Exec: uint8(i), Key: me.Key, Text: "the new index takes {k} (index {f})"}).To
	t.Turns[i].Copied = true
	t.take(m, me.Key, false)
	return true
}

// afterApplied appends the steps of a turn whose version is in the index that the name meant. The
// new index comes next.
func (m Rebuild) afterApplied(x *leaving[RebuildState], s RebuildState, i int) {
	me := s.Turns[i]
	l := Label{Exec: uint8(i), Key: me.Key}
	if m.writeNew(x, s, i) {
		if s.Fails > 0 {
			t := &x.addEdge(s, false, l.withText("the new index does not take {k} (index {f})")).To
			t.Fails--
			t.Turns[i].Missed = true
			t = &x.addEdge(s, false, l.withText("the outcome of {k} in the new index is unknown (index {f})")).To
			t.Fails--
			t.Turns[i].Missed = true
			t.addLate(me.Key)
		}
		return
	}
	late := m.Rules.MarkLate && !me.Committed
	open := s.Announced && (!s.Sealed || m.Rules.NoSeal)
	e := x.addFree(s, l)
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
