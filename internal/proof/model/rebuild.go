package model

import (
	"cmp"
	"slices"
)

// Rebuild is a new index that takes the place of the one in use (ADR 0031): one document with three
// versions that are written to both, a copy of what was there before, a comparison, and the switch
// of the name. Indices refuse what is older than what they know of, deletes too.
type Rebuild struct {
	Rules   RebuildRules
	Deletes KeySet // versions that delete the document
	Crashes uint8
	Fails   uint8 // times that the new index does not take a write, or nobody knows
}

// RebuildRules are changes to the design, which is the zero value.
type RebuildRules struct {
	NoWait        bool // the comparison does not wait for turns that began before the rebuild
	Forgotten     bool // a write that the new index did not take is nowhere noted
	MarkLate      bool // ... is noted after COMMIT
	NoSeal        bool // a write may be noted as missed while the name is switched
	MarkRefused   bool // a turn whose note was refused commits all the same
	Unverified    bool // the name is switched after the copy, without a comparison
	OneWay        bool // nobody looks for what only the new index has
	Beside        bool // the new index is written beside the one in use, not after it
	Hasty         bool // the comparison does not wait for copies that are on their way
	UnsealedEarly bool // the seal is broken while the call that switches the name may be on its way
	FinishedFirst bool // writes end in the new index before the name is switched
}

// Turning is an invocation of index.
type Turning struct {
	Phase    uint8 // turnIdle to turnApplied
	Knows    bool  // it read that there is a rebuild
	Key      Key
	IntoNew, // the name stood for the new index when its request arrived
	Copied, // the new index took the version
	Missed, // ... did not, or nobody knows
	Marked, // ... and that is noted
	Committed bool
}

// The phases of a turn.
const (
	turnIdle    uint8 = iota
	turnBegun         // it read the health row
	turnClaimed       // it has the lease
	turnSent          // the engine has looked at what the name stands for
	turnApplied
)

// Copying is a request of the rebuild's own.
type Copying struct {
	Key    Key
	Delete bool
}

// The phases of a rebuild.
const (
	stepNone      uint8 = iota
	stepAnnounced       // the health row names the new index
	stepFilling         // the copy has read the index in use
	stepPass            // the number of missed writes was read
	stepOld             // the document was read in the index in use
	stepCopy            // its copy was sent
	stepNew             // the document was read in the new index
	stepErase           // the delete of what only the new index has was sent
	stepClean           // nothing differs
	stepSeal            // no write may be noted as missed any more
	stepSwitch          // the call that switches the name was sent
	stepSwitched
	stepDone
)

// RebuildState is everything at one moment.
type RebuildState struct {
	Old, New, Gone           Key // the newest version that an index holds; that the new one has deleted
	Committed, Claimed       Key
	Erased                   Key   // the newest delete that was applied where the name stood for
	Owner                    uint8 // turn + 1
	Turns                    [2]Turning
	Announced, Sealed, Named bool // Named: the name stands for the new index
	Missed, Seen             uint8
	Step                     uint8
	Read                     Key
	Late                     [2]Copying // requests that nobody waits for any more, or that the copy made; of three two
	Calling                  bool       // a call that switches the name is on its way
	Crashes, Fails           uint8
}

var _ Machine[RebuildState] = Rebuild{}

// Initial holds version 1, committed.
func (m Rebuild) Initial() RebuildState {
	return RebuildState{Old: 1, Committed: 1, Claimed: 1, Crashes: m.Crashes, Fails: m.Fails}
}

// Canon sorts what has no order.
func (m Rebuild) Canon(s RebuildState) RebuildState {
	slices.SortFunc(s.Late[:], func(a, b Copying) int { return cmp.Compare(b.rank(), a.rank()) })
	return s
}

func (c Copying) rank() int {
	n := 2 * int(c.Key)
	if c.Delete {
		n++
	}
	return n
}

// shows is what a reader of an index finds: nothing where the newest version is a delete.
func (m Rebuild) shows(k Key) Key {
	if m.Deletes.Has(k) {
		return None
	}
	return k
}

// Check compares what readers of the name find with what was committed.
func (m Rebuild) Check(s RebuildState) Broken {
	if !s.Named {
		return 0
	}
	shown := m.shows(s.New)
	switch committed := m.shows(s.Committed); {
	case committed == None && shown != None && shown < s.Committed:
		return Resurrected
	case committed != None && shown != None && shown < s.Committed:
		return WentBack
	case committed != None && shown == None && s.Erased < s.Committed:
		return WentBack
	}
	return 0
}

// Settled wants every version committed and the rebuild done.
func (m Rebuild) Settled(s RebuildState) bool {
	return s.Committed == MaxKey && s.Step == stepDone && s.Turns == [2]Turning{}
}

// Next appends what can happen: the turns, the rebuild, and requests of it that come late.
func (m Rebuild) Next(s RebuildState, edges []Edge[RebuildState]) []Edge[RebuildState] {
	add := func(t RebuildState, free bool, l Label) {
		edges = append(edges, Edge[RebuildState]{To: t, Free: free, Label: l})
	}
	for i := range s.Turns {
		m.turn(s, i, add)
	}
	m.step(s, add)
	for i, c := range s.Late {
		if c == (Copying{}) {
			continue
		}
		t := s
		t.Late[i] = Copying{}
		t.take(m, c.Key, c.Delete)
		add(t, true, Label{Key: c.Key, Text: "the new index gets a request about {k} that nobody waits for"})
	}
	if s.Gone != None {
		t := s
		t.Gone = None
		add(t, true, Label{Text: "the new index forgets what it has deleted"})
	}
	if s.Calling {
		t := s
		t.Calling, t.Named = false, true
		if t.Step == stepSwitch {
			t.Step = stepSwitched
		}
		add(t, true, Label{Text: "the name stands for the new index"})
		t = s
		t.Calling = false
		add(t, true, Label{Text: "the call that switches the name fails"})
	}
	return edges
}

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

// turn appends what one invocation of index can do next.
func (m Rebuild) turn(s RebuildState, i int, add func(RebuildState, bool, Label)) {
	me := s.Turns[i]
	l := Label{Exec: uint8(i), Key: me.Key}
	t := s
	turn := &t.Turns[i]
	to := func(text string, free bool) { l.Text = text; add(t, free, l) }
	if me.Phase != turnIdle && s.Crashes > 0 {
		t.Crashes--
		*turn = Turning{}
		to("index {f} crashes", false)
		t = s
	}
	if s.Owner == uint8(i)+1 && me.Phase == turnIdle {
		t.Owner = 0
		to("the lease of index {f} runs out", true)
		return
	}
	switch me.Phase {
	case turnIdle:
		if s.Committed < MaxKey {
			*turn = Turning{Phase: turnBegun, Knows: s.Announced}
			to("index {f} reads the health row", true)
		}
	case turnBegun:
		*turn = Turning{}
		to("index {f} ends without a claim", true)
		for k := max(s.Committed+1, s.Claimed); k <= MaxKey && s.Owner == 0; k++ {
			t = s
			t.Owner, t.Claimed = uint8(i)+1, k
			t.Turns[i] = Turning{Phase: turnClaimed, Knows: me.Knows, Key: k}
			l.Key = k
			to("index {f}: CLAIM {k}", true)
		}
	case turnClaimed:
		turn.Phase, turn.IntoNew = turnSent, s.Named
		to("the request of index {f} about {k} arrives", true)
	case turnSent:
		if turn.Phase = turnApplied; m.Deletes.Has(me.Key) {
			t.Erased = max(s.Erased, me.Key)
		}
		if me.IntoNew {
			t.take(m, me.Key, false)
		} else {
			t.Old = max(t.Old, me.Key)
		}
		to("{k} is applied where its name stood for (index {f})", true)
		if m.Rules.Beside && me.Knows && !me.Copied && !me.Missed {
			t = s
			t.Turns[i].Copied = true
			t.take(m, me.Key, false)
			to("the new index takes {k} (index {f})", true)
		}
	case turnApplied:
		m.applied(s, i, to, &t)
	}
}

// applied is a turn whose version is in the index that its name stood for: the new index is next.
func (m Rebuild) applied(s RebuildState, i int, to func(string, bool), t *RebuildState) {
	me := s.Turns[i]
	turn := &t.Turns[i]
	commit := func() {
		if s.Owner == uint8(i)+1 {
			t.Committed, t.Owner = max(s.Committed, me.Key), 0
		}
		if turn.Committed = true; !(m.Rules.MarkLate && me.Missed && !me.Marked) {
			*turn = Turning{}
		}
		to("index {f}: COMMIT {k}", true)
	}
	switch {
	case me.Knows && !me.Copied && !me.Missed:
		turn.Copied = true
		t.take(m, me.Key, false)
		to("the new index takes {k} (index {f})", true)
		if s.Fails > 0 {
			*t = s
			t.Fails--
			t.Turns[i].Missed = true
			to("the new index does not take {k} (index {f})", false)
		}
	case !me.Missed || me.Marked || m.Rules.Forgotten || m.Rules.MarkLate && !me.Committed:
		commit()
	case s.Announced && (!s.Sealed || m.Rules.NoSeal):
		turn.Marked = true
		t.Missed = min(s.Missed+1, 3)
		if me.Committed {
			*turn = Turning{}
		}
		to("index {f}: MISS {k}: applied", true)
	case m.Rules.MarkRefused:
		commit()
	default:
		*turn = Turning{}
		to("index {f}: MISS {k}: refused: nothing is committed", true)
	}
}

// step appends what the rebuild can do next.
func (m Rebuild) step(s RebuildState, edge func(RebuildState, bool, Label)) {
	t := s
	to := func(text string) { edge(t, true, Label{Key: t.Read, Text: "rebuild: " + text}) }
	if s.Step > stepAnnounced && s.Step < stepSwitched && s.Crashes > 0 {
		t.Crashes--
		t.Step, t.Read = stepAnnounced, None
		switch s.Step {
		case stepCopy:
			add(t.Late[:], Copying{Key: s.Read})
		case stepErase:
			add(t.Late[:], Copying{Key: s.Read, Delete: true})
		}
		edge(t, false, Label{Text: "the rebuild is killed, and resumed"})
		t = s
	}
	switch s.Step {
	case stepNone:
		t.Step, t.Announced = stepAnnounced, true
		to("the health row names the new index")
	case stepAnnounced:
		switch {
		case s.Named: // killed at the switch
			t.Step = stepSwitched
			to("the name stands for the new index already")
		case s.Sealed && s.Calling && !m.Rules.UnsealedEarly: // ... it may still happen
		case s.Sealed:
			t.Sealed = false
			to("UNSEAL: the call that switches the name is over")
		default:
			if t.Step = stepFilling; m.shows(s.Old) != None {
				add(t.Late[:], Copying{Key: s.Old})
			}
			to("the copy reads the index in use")
		}
	case stepFilling:
		unaware := slices.ContainsFunc(s.Turns[:], func(w Turning) bool { return w.Phase > 0 && !w.Knows })
		switch {
		case m.Rules.Unverified:
			t.Step, t.Seen = stepClean, s.Missed
		case unaware && !m.Rules.NoWait, s.Late != [2]Copying{} && !m.Rules.Hasty:
			return
		default:
			t.Step, t.Seen = stepPass, s.Missed
		}
		to("reads the number of missed writes")
	case stepPass:
		t.Step, t.Read = stepOld, m.shows(s.Old)
		to("reads the document in the index in use")
	case stepOld:
		switch n := m.shows(s.New); {
		case s.Read > n:
			t.Step = stepCopy
			to("the new index has less: sends a copy of {k}")
		case m.Rules.OneWay:
			t.Step = stepClean
			to("the new index has no less")
		default:
			t.Step, t.Read = stepNew, n
			to("the new index has no less; reads it once more")
		}
	case stepCopy, stepErase:
		t.take(m, s.Read, s.Step == stepErase)
		t.Step, t.Read = stepPass, None
		to("its request is answered: looks again")
	case stepNew:
		switch old := m.shows(s.Old); {
		case s.Read != None && old == None:
			t.Step = stepErase
			to("only the new index has {k}: sends a delete of it")
		case s.Read != None && old != s.Read:
			t.Step, t.Read = stepPass, None
			to("the index in use has another version: looks again")
		default:
			t.Step, t.Read = stepClean, None
			to("nothing differs")
		}
	case stepClean:
		t.Step = stepPass
		if s.Missed == s.Seen {
			t.Step, t.Sealed = stepSeal, !m.Rules.NoSeal
			to("SEAL: applied")
			return
		}
		t.Seen = s.Missed
		to("SEAL: refused: a write was missed: compares again")
	case stepSwitch:
		if !s.Calling {
			t.Step = stepSeal
			to("the name does not stand for the new index yet")
		}
	case stepSeal:
		t.Step, t.Calling = stepSwitch, true
		t.Announced = !m.Rules.FinishedFirst
		to("the call that switches the name is sent")
	case stepSwitched:
		t.Step, t.Announced, t.Sealed = stepDone, false, false
		to("the health row names no index any more")
	}
}
