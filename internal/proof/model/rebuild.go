package model

import (
	"cmp"
	"slices"
)

// Rebuild is a new index that takes the place of the one in use (ADR 0035): one document with three
// versions that are written to both, a copy of what was there before, a comparison, and the switch
// of the name. Indices refuse what is older than what they know of, deletes too.
type Rebuild struct {
	Rules   RebuildRules
	Deletes KeySet // versions that delete the document
	Crashes uint8
	Fails   uint8 // writes of turns that the new index does not take, or that have no answer
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
	MissedLate    bool // ... for missed writes that may still arrive
	UnsealedEarly bool // the seal is broken while the call that switches the name may be on its way
	GivenUpEarly  bool // ... or the rebuild is given up
	FinishedFirst bool // writes end in the new index before the name is switched
}

// Turning is an invocation of index.
type Turning struct {
	Phase    uint8 // TurnIdle to TurnApplied
	Knows    bool  // it read that there is a rebuild
	Key      Key
	IntoNew, // the name stood for the new index when its request arrived
	Copied, // the new index took the version
	Missed, // ... did not, or nobody knows
	Marked, // ... and that is noted
	Committed bool
}

// The phases of a turn. The first is that of a turn that has not begun.
const (
	TurnIdle    uint8 = iota
	TurnBegun         // it read the health row
	TurnClaimed       // it has the lease
	TurnSent          // the engine has looked at what the name stands for
	TurnApplied
)

// Copying is a request to the new index that nobody waits for: a copy or a delete of the rebuild's,
// or the write of a turn.
type Copying struct {
	Key    Key
	Delete bool
	Turn   bool // of a turn: it arrives before the new index forgets a newer delete
	Early  bool // ... which sent it before the number of missed writes was read
}

// The phases of a rebuild, and what was done last.
const (
	StepNone      uint8 = iota
	StepAnnounced       // the health row names the new index
	StepFilling         // the copy has read the index in use
	StepPass            // the number of missed writes was read
	StepOld             // the document was read in the index in use
	StepCopy            // its copy was sent
	StepNew             // the document was read in the new index
	StepErase           // the delete of what only the new index has was sent
	StepClean           // nothing differs
	StepSeal            // no write may be noted as missed any more
	StepSwitch          // the call that switches the name was sent
	StepSwitched
	StepDone
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
	Late                     [3]Copying // requests that nobody waits for any more, or that the copy made
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
	n := 8 * int(c.Key)
	for i, is := range []bool{c.Delete, c.Turn, c.Early} {
		if is {
			n += 1 << i
		}
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
	return s.Committed == MaxKey && s.Step == StepDone && s.Turns == [2]Turning{}
}

// Next appends what can happen: the turns, the rebuild, and requests of it that come late.
func (m Rebuild) Next(s RebuildState, edges []Edge[RebuildState]) []Edge[RebuildState] {
	x := &leaving[RebuildState]{edges: edges}
	for i := range s.Turns {
		m.turn(x, s, i)
	}
	if s.Step > StepAnnounced && s.Step < StepSwitched && s.Crashes > 0 {
		m.killed(&x.edge(s, false, Label{Text: "the rebuild is killed, and resumed"}).To)
	}
	m.step(x, s)
	for i, c := range s.Late {
		if c != (Copying{}) {
			t := &x.free(s, Label{Key: c.Key, Text: "the new index gets a request about {k} that nobody waits for"}).To
			t.Late[i] = Copying{}
			t.take(m, c.Key, c.Delete)
		}
	}
	if s.Gone != None && !s.remembers() {
		x.free(s, Label{Text: "the new index forgets what it has deleted"}).To.Gone = None
	}
	if s.Calling {
		t := &x.free(s, Label{Text: "the name stands for the new index"}).To
		t.Calling, t.Named = false, true
		if t.Step == StepSwitch {
			t.Step = StepSwitched
		}
		x.free(s, Label{Text: "the call that switches the name fails"}).To.Calling = false
	}
	return x.edges
}

// killed is a rebuild that begins anew; what it had sent may still arrive.
func (m Rebuild) killed(t *RebuildState) {
	if t.Step == StepCopy || t.Step == StepErase {
		add(t.Late[:], Copying{Key: t.Read, Delete: t.Step == StepErase})
	}
	t.Crashes--
	t.Step, t.Read = StepAnnounced, None
}

// step appends what the rebuild does next, unless it waits.
func (m Rebuild) step(x *leaving[RebuildState], s RebuildState) {
	unaware := slices.ContainsFunc(s.Turns[:], func(w Turning) bool { return w.Phase > 0 && !w.Knows })
	copying := slices.ContainsFunc(s.Late[:], func(c Copying) bool { return c.Key != None && !c.Turn })
	early := slices.ContainsFunc(s.Late[:], func(c Copying) bool { return c.Early })
	if s.Step == StepAnnounced && !s.Named && (!s.Sealed || m.Rules.GivenUpEarly) {
		t := &x.edge(s, false, Label{Text: "rebuild: given up: the health row names no index any more"}).To
		t.Announced, t.Sealed, t.Step = false, false, StepDone
	}
	switch {
	case s.Step == StepAnnounced && !s.Named && s.Sealed && s.Calling && !m.Rules.UnsealedEarly:
		return // the switch may still happen
	case s.Step == StepFilling && !m.Rules.Unverified && (unaware && !m.Rules.NoWait || copying && !m.Rules.Hasty):
		return
	case s.Step == StepPass && early && !m.Rules.MissedLate:
		return
	case s.Step == StepSwitch && s.Calling, s.Step == StepDone:
		return
	}
	e := x.free(s, Label{})
	t := &e.To
	e.Label.Text = "rebuild: " + m.stepped(t)
	e.Label.Key = t.Read
}

// stepped takes a step of the rebuild, and says which.
func (m Rebuild) stepped(t *RebuildState) string {
	old, fresh := m.shows(t.Old), m.shows(t.New)
	to := func(step uint8, read Key, text string) string {
		t.Step, t.Read = step, read
		return text
	}
	switch t.Step {
	case StepNone:
		t.Announced = true
		return to(StepAnnounced, None, "the health row names the new index")
	case StepAnnounced:
		switch {
		case t.Named: // killed at the switch
			return to(StepSwitched, None, "the name stands for the new index already")
		case t.Sealed:
			t.Sealed = false
			return to(StepAnnounced, None, "UNSEAL: the call that switches the name is over")
		case old != None:
			add(t.Late[:], Copying{Key: t.Old})
		}
		return to(StepFilling, None, "the copy reads the index in use")
	case StepFilling:
		t.counted()
		if m.Rules.Unverified {
			return to(StepClean, None, "reads the number of missed writes")
		}
		return to(StepPass, None, "reads the number of missed writes")
	case StepPass:
		return to(StepOld, old, "reads the document in the index in use")
	case StepOld:
		switch {
		case t.Read > fresh:
			return to(StepCopy, t.Read, "the new index has less: sends a copy of {k}")
		case m.Rules.OneWay:
			return to(StepClean, t.Read, "the new index has no less")
		}
		return to(StepNew, fresh, "the new index has no less; reads it once more")
	case StepCopy, StepErase:
		t.take(m, t.Read, t.Step == StepErase)
		return to(StepPass, None, "its request is answered: looks again")
	case StepNew:
		switch {
		case t.Read != None && old == None:
			return to(StepErase, t.Read, "only the new index has {k}: sends a delete of it")
		case t.Read != None && old != t.Read:
			return to(StepPass, None, "the index in use has another version: looks again")
		}
		return to(StepClean, None, "nothing differs")
	case StepClean:
		if t.Missed == t.Seen {
			t.Sealed = !m.Rules.NoSeal
			return to(StepSeal, t.Read, "SEAL: applied")
		}
		t.counted()
		return to(StepPass, t.Read, "SEAL: refused: a write was missed: compares again")
	case StepSwitch:
		return to(StepSeal, t.Read, "the name does not stand for the new index yet")
	case StepSeal:
		t.Calling, t.Announced = true, !m.Rules.FinishedFirst
		return to(StepSwitch, t.Read, "the call that switches the name is sent")
	}
	t.Announced, t.Sealed = false, false
	return to(StepDone, t.Read, "the health row names no index any more")
}
