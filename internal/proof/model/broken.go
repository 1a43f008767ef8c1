// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"
)

// The values of Broken. The first group are damages that the promises of design section 3 exclude.
// The second group are breaches of the rules that prevent damages. A rule breaks earlier than a
// damage happens, and the damage shows why the rule matters.
const (
	WentBack    Broken = 1 << iota // an older version replaced the sink's content
	Resurrected                    // an older version brought a deleted document back
	Lost                           // the newest version that is not a dead letter is nowhere
	OldStays                       // all is settled, and the sink holds a version older than the committed one
	Hidden                         // like Lost, but the dead letter is marked as redriven

	TwoWriters  // a sink without versions applied a request outside of the request's lease
	Unjustified // a message was deleted although an event in it was neither committed nor stored
	Untrue      // a version was committed that is not in the sink
	SinkNewer   // the sink refused the holder of the lease, because the request's fence was not the highest
	EarlyDeath  // a dead letter was caused by the refusals of another version
	BodyBack    // an older state of the source replaced a newer one in the sink

	TooSoon     // Pace: two committed writes are closer than minInterval
	ClaimedOpen // Breaker: a flight claimed a document although it knew that the circuit breaker was open
	ProbedByTwo // Breaker: two flights probe at the same time

	FalseRaise // a row was raised to a version that the sink does not hold any more

	ClaimedPaused // Breaker: a flight that read the row after an operator's pause may claim

	OldContent // all is settled, and the sink's content is older than the committed version

	TakenBack // a version that a reset withdrew is in the sink or committed again

	Skipped    // Jobs: the cursor follows a step that was not done
	Miscounted // Jobs: a job is done, and its counts are not the counts of its steps
	Leaseless  // Jobs: a program without the lease stored something
	Undone     // Jobs: a finished job is no longer finished, and no command started it again
	Revived    // Jobs: a program stored something after its job was stopped
)

// Damage is the set of damages that a user would see.
const Damage = WentBack | Resurrected | Lost | OldStays | OldContent | TakenBack

// All is the set of everything that the design promises to prevent: all damages, and breaches of
// rules. docs/model.md explains what the design does not promise.
const All = Damage | TwoWriters | Unjustified | Untrue | SinkNewer | FalseRaise | BodyBack

var brokenText = []string{
	"the sink went back to an older version",
	"a deleted document is back",
	"the newest version is lost: neither the sink nor a message nor a dead letter has it",
	"everything is settled, and the sink holds a version older than the committed one",
	"the newest version is neither in the sink nor on its way, and its dead letter says that it was sent again",
	"a sink without versions applied a write outside of its lease: two writers",
	"a message was deleted although an event in it is not done",
	"a version was committed that the sink does not have",
	"the sink refused the holder of a live lease: another write had the same or a higher external version",
	"a version became a dead letter because of another version's refusals",
	"an older content of a reference replaced a newer one in the sink",
	"two committed writes are closer than minInterval",
	"a document was claimed although its flight knew that the circuit breaker is open",
	"two flights probe at the same time",
	"a row was raised to a version that the sink does not hold any more",
	"a flight that read the row after an operator's pause may claim",
	"everything is settled, and the sink holds a content that is older than the committed version",
	"a version that a reset withdrew is in the sink or committed again",
	"the cursor of a job follows a step that was not done",
	"a job is done, and its counts are not the counts of its steps",
	"a program stored the progress of a job without having its lease",
	"a finished job is no longer finished, and no command started it again",
	"a program whose job was stopped stored its progress",
}

// String names what is broken.
func (b Broken) String() string {
	var out []string
	for i, t := range brokenText {
		if b>>i&1 == 1 {
			out = append(out, t)
		}
	}
	return strings.Join(out, "; ")
}

// Check returns what a state violates.
func (m Model) Check(s State) Broken {
	b := m.lost(&s)
	if m.Settled(s) && s.Sink.shows() < s.Row.version() && !s.Listed {
		b |= OldStays
	}
	if m.Bounds.References && m.Settled(s) && s.Sink.Body < s.Row.Committed && !m.Bounds.Deletes.Has(s.Sink.Content) {
		b |= OldContent
	}
	if s.Forgotten&(Keys(s.Sink.Content, s.Row.version())&^Keys(None)) != 0 {
		b |= TakenBack
	}
	return b
}

// lost looks for the newest version that is not a dead letter. The sink must hold this version, or
// some process must still carry this version or a newer one.
func (m *Model) lost(s *State) Broken {
	carried := m.live(s) | 1<<s.Redrive
	for _, e := range s.Execs {
		if e.Phase != Waiting {
			carried |= 1 << e.Key
		}
	}
	var b Broken
	for k := MaxKey; k > None; k-- {
		switch {
		case carried.Has(k) || s.Sink.shows() >= k || s.Row.Committed >= k:
			return b
		case !m.sent(k) || s.DeadLetters[k] == Parked || s.Forgotten != 0 && m.Bounds.Absurd.Has(k):
		case s.DeadLetters[k] == Redriven:
			b |= Hidden
		default:
			return b | Lost
		}
	}
	return b
}

// live returns the versions that a message or a manifest carries.
func (m *Model) live(s *State) KeySet {
	return m.keys(s.held() | s.notGone())
}

// sent reports whether the upstream sends k.
func (m *Model) sent(k Key) bool {
	return slices.ContainsFunc(m.Bounds.Messages, func(msg Message) bool { return !msg.Spare && msg.Keys.Has(k) })
}

// Settled reports whether nothing is under way: no message, no flight, no lease, no pending
// version, and a row that will expire. Parked dead letters are allowed. If Bounds.Orphans is set, a
// row may have a pending version, and then need not expire.
func (m Model) Settled(s State) bool {
	if s.notGone()|s.held() != 0 || s.Redrive != None || s.Collect || s.Down || s.Restored ||
		s.Opens != [maxOpens]Open{} {
		return false
	}
	if m.Bounds.Orphans && s.Row.Pending != None {
		return s.calm() && !s.Row.Lease
	}
	return s.calm() && (!s.Row.Exists || s.Row.Pending == None && !s.Row.Lease && s.Row.Expires)
}

// calm reports whether index has no invocation, no request and no row write under way.
func (s *State) calm() bool {
	return !slices.ContainsFunc(s.Execs[:], func(f Exec) bool { return f.Phase != Waiting }) &&
		s.Requests == [maxRequests]Request{} && s.Writes == [maxWrites]RowWrite{}
}
