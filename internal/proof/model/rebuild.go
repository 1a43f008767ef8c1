// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"
)

// Rebuild is a new index that replaces the index in use (ADR 0035). One document has three
// versions, and index writes them to both indices. The rebuild copies the old state, compares the
// indices, and switches the name. An index refuses writes and deletes that are older than what it
// knows.
type Rebuild struct {
	Rules   RebuildRules
	Deletes KeySet // versions that delete the document
	Crashes uint8
	Fails   uint8 // writes of turns that the new index does not take, or that get no answer
}

// RebuildRules are changes to the design. The zero value is the design.
type RebuildRules struct {
	NoWait        bool // the comparison does not wait for turns that began before the rebuild
	Forgotten     bool // a write that the new index did not take is not noted anywhere
	MarkLate      bool // a write that the new index did not take is noted only after COMMIT
	NoSeal        bool // a write may be noted as missed while the name is switched
	MarkRefused   bool // a turn commits although its note of a missed write was refused
	Unverified    bool // the name is switched after the copy, without a comparison
	OneWay        bool // the comparison does not look for documents that only the new index has
	Beside        bool // a turn writes to both indices at the same time, not to the index in use first
	Hasty         bool // the comparison does not wait for copies that are still on their way
	MissedLate    bool // the comparison does not wait for missed writes that may still arrive
	UnsealedEarly bool // UNSEAL runs while the call that switches the name may still be on its way
	GivenUpEarly  bool // the rebuild is given up while the call that switches the name may still be on its way
	FinishedFirst bool // the health row stops naming the new index before the name is switched
}

// Turning is an invocation of index.
type Turning struct {
	Phase    uint8 // TurnIdle to TurnApplied
	Knows    bool  // the turn read that there is a rebuild
	Key      Key
	IntoNew, // the name already meant the new index when the turn's request arrived
	Copied, // the new index took the version
	Missed, // the new index did not take the version, or the outcome is unknown
	Marked, // the missed write is noted in the health row
	Committed bool
}

// The phases of a turn. TurnIdle means that the turn has not begun.
const (
	TurnIdle    uint8 = iota
	TurnBegun         // the turn has read the health row
	TurnClaimed       // the turn has the lease
	TurnSent          // the engine has resolved the name to an index
	TurnApplied
)

// Copying is a request to the new index whose sender no longer waits: a copy or a delete by the
// rebuild, or the write of a turn.
type Copying struct {
	Key    Key
	Delete bool
	Turn   bool // the write of a turn, which arrives before the new index forgets a newer delete
	Early  bool // a turn sent the write before the number of missed writes was read
}

// The phases of a rebuild: the last step that was done.
const (
	StepNone      uint8 = iota
	StepAnnounced       // the health row names the new index
	StepFilling         // the rebuild has read the index in use, for the copy
	StepPass            // the rebuild has read the number of missed writes
	StepOld             // the rebuild has read the document in the index in use
	StepCopy            // the rebuild has sent a copy of the document
	StepNew             // the rebuild has read the document in the new index
	StepErase           // the rebuild has sent the delete of a document that only the new index has
	StepClean           // the comparison found no difference
	StepSeal            // no turn may note a missed write any more
	StepSwitch          // the call that switches the name was sent
	StepSwitched
	StepDone
)

// RebuildState is the state of all processes at one moment.
type RebuildState struct {
	Old, New, Gone           Key // the newest version in each index, and the newest version that the new index deleted
	Committed, Claimed       Key
	Erased                   Key   // the newest delete that was applied where the name stood for
	Owner                    uint8 // turn + 1
	Turns                    [2]Turning
	Announced, Sealed, Named bool // Named: the name means the new index
	Missed, Seen             uint8
	Step                     uint8
	Read                     Key
	Late                     [3]Copying // requests whose sender no longer waits, and requests that the copy made
	Calling                  bool       // a call that switches the name is on its way
	Crashes, Fails           uint8
}

var _ Machine[RebuildState] = Rebuild{}

// Initial returns the state in which version 1 is committed and in the index in use.
func (m Rebuild) Initial() RebuildState {
	return RebuildState{Old: 1, Committed: 1, Claimed: 1, Crashes: m.Crashes, Fails: m.Fails}
}

// Canon sorts the late requests, whose order does not matter.
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

// visible returns the version that a reader of an index finds. A reader finds None if the newest
// version is a delete.
func (m Rebuild) visible(k Key) Key {
	if m.Deletes.Has(k) {
		return None
	}
	return k
}

// Check compares what readers of the name find with the committed version.
func (m Rebuild) Check(s RebuildState) Broken {
	if !s.Named {
		return 0
	}
	shown := m.visible(s.New)
	switch committed := m.visible(s.Committed); {
	case committed == None && shown != None && shown < s.Committed:
		return Resurrected
	case committed != None && shown != None && shown < s.Committed:
		return WentBack
	case committed != None && shown == None && s.Erased < s.Committed:
		return WentBack
	}
	return 0
}

// Settled reports whether every version is committed and the rebuild is done.
func (m Rebuild) Settled(s RebuildState) bool {
	return s.Committed == MaxKey && s.Step == StepDone && s.Turns == [2]Turning{}
}

// Next appends the next steps of the turns, of the rebuild and of late requests.
func (m Rebuild) Next(s RebuildState, edges []Edge[RebuildState]) []Edge[RebuildState] {
	x := &leaving[RebuildState]{edges: edges}
	for i := range s.Turns {
		m.turn(x, s, i)
	}
	if s.Step > StepAnnounced && s.Step < StepSwitched && s.Crashes > 0 {
		m.restart(&x.addEdge(s, false, Label{Text: "the rebuild is killed, and resumed"}).To)
	}
	m.step(x, s)
	for i, c := range s.Late {
		if c != (Copying{}) {
			t := &x.addFree(s, Label{Key: c.Key, Text: "the new index gets a request about {k} whose sender no longer waits"}).To
			t.Late[i] = Copying{}
			t.take(m, c.Key, c.Delete)
		}
	}
	if s.Gone != None && !s.mustRemember() {
		x.addFree(s, Label{Text: "the new index forgets what it has deleted"}).To.Gone = None
	}
	if s.Calling {
		t := &x.addFree(s, Label{Text: "the name stands for the new index"}).To
		t.Calling, t.Named = false, true
		if t.Step == StepSwitch {
			t.Step = StepSwitched
		}
		x.addFree(s, Label{Text: "the call that switches the name fails"}).To.Calling = false
	}
	return x.edges
}

// restart is a rebuild that was killed and starts again. The last request of the killed rebuild may
// still arrive.
func (m Rebuild) restart(t *RebuildState) {
	if t.Step == StepCopy || t.Step == StepErase {
		add(t.Late[:], Copying{Key: t.Read, Delete: t.Step == StepErase})
	}
	t.Crashes--
	t.Step, t.Read = StepAnnounced, None
}

// step appends the next step of the rebuild, unless the rebuild waits.
func (m Rebuild) step(x *leaving[RebuildState], s RebuildState) {
	unaware := slices.ContainsFunc(s.Turns[:], func(w Turning) bool { return w.Phase > 0 && !w.Knows })
	copying := slices.ContainsFunc(s.Late[:], func(c Copying) bool { return c.Key != None && !c.Turn })
	early := slices.ContainsFunc(s.Late[:], func(c Copying) bool { return c.Early })
	if s.Step == StepAnnounced && !s.Named && (!s.Sealed || m.Rules.GivenUpEarly) {
		t := &x.addEdge(s, false, Label{Text: "rebuild: given up: the health row names no index any more"}).To
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
	e := x.addFree(s, Label{})
	t := &e.To
	e.Label.Text = "rebuild: " + m.nextStep(t)
	e.Label.Key = t.Read
}

// nextStep takes the next step of the rebuild, and returns its description.
func (m Rebuild) nextStep(t *RebuildState) string {
	old, fresh := m.visible(t.Old), m.visible(t.New)
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
		t.readMissed()
		if m.Rules.Unverified {
			return to(StepClean, None, "reads the number of missed writes")
		}
		return to(StepPass, None, "reads the number of missed writes")
	case StepPass:
		return to(StepOld, old, "reads the document in the index in use")
	case StepOld:
		switch {
		case t.Read > fresh:
			return to(StepCopy, t.Read, "the new index has an older version: sends a copy of {k}")
		case m.Rules.OneWay:
			return to(StepClean, t.Read, "the new index has this version or a newer one")
		}
		return to(StepNew, fresh, "the new index has this version or a newer one; reads it again")
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
		t.readMissed()
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
