package model

import (
	"slices"
	"strings"
)

// What can be broken. The first group are the damages that the promises of design section 3
// exclude, the second are the rules that keep them away: a rule breaks earlier, a damage says why
// it matters.
const (
	WentBack    Broken = 1 << iota // the sink's content was replaced by an older version
	Resurrected                    // ... which put a deleted document back
	Lost                           // the newest version that is no dead letter is neither in the sink nor anywhere else
	OldStays                       // all is settled, and the sink holds less than what was committed
	Hidden                         // as Lost, but a dead letter says that it was redriven

	TwoWriters  // a sink without versions applied a request outside of its lease
	Unjustified // a message was deleted although an event in it was neither committed nor stored
	Untrue      // a version was committed that the sink does not have
	SinkNewer   // the sink refused the holder of the lease: its fence was not the highest
	EarlyDeath  // a dead letter for refusals of another version
	BodyBack    // an older state of the source replaced a newer one in the sink

	TooSoon     // Pace: two committed writes closer than minInterval
	ClaimedOpen // Breaker: a document was claimed by somebody who knew that the circuit breaker is open
	ProbedByTwo // Breaker: two probe at the same time

	FalseRaise // a row was raised to a version that the sink does not hold any more

	ClaimedPaused // Breaker: a flight that looked after an operator had paused the sink may claim

	OldContent // all is settled, and the sink holds a content that is older than the committed version

	TakenBack // a version that an operator took back is in the sink or committed again

	Skipped    // Jobs: the cursor follows a step that was not done
	Miscounted // Jobs: a job is done, and its counts are not those of its steps
	Leaseless  // Jobs: a program without the lease stored something
	Undone     // Jobs: a job that was done is not done any more, and no command began it
	Revived    // Jobs: a program whose job was stopped stored something
)

// Damage is what a user would see.
const Damage = WentBack | Resurrected | Lost | OldStays | OldContent | TakenBack

// All are the damages and the rules, but the two that the design does not promise: see
// docs/model.md.
const All = Damage | TwoWriters | Unjustified | Untrue | SinkNewer | FalseRaise | BodyBack

var brokenText = []string{
	"the sink went back to an older version",
	"a deleted document is back",
	"the newest version is lost: not in the sink, no message, no dead letter",
	"everything is settled, and the sink holds an older version than the committed one",
	"the newest version is neither in the sink nor on its way, and its dead letter says that it was sent again",
	"a sink without versions applied a write outside of its lease: two writers",
	"a message was deleted although an event in it is not done",
	"a version was committed that the sink does not have",
	"the sink refused the holder of a live lease: somebody had the same or a higher external version",
	"a version became a dead letter because of another version's refusals",
	"an older content of a reference replaced a newer one in the sink",
	"two committed writes are closer than minInterval",
	"a document was claimed although its flight knew that the circuit breaker is open",
	"two probe at the same time",
	"a row was raised to a version that the sink does not hold any more",
	"a flight that looked after an operator had paused the sink may claim",
	"everything is settled, and the sink holds a content that is older than the committed version",
	"a version that an operator took back is there again",
	"the cursor of a job follows a step that was not done",
	"a job is done, and its counts are not those of its steps",
	"a program stored the progress of a job without having its lease",
	"a job that was done is not done any more, and no command began it again",
	"a program whose job was stopped stored its progress",
}

// String says what is broken.
func (b Broken) String() string {
	var out []string
	for i, t := range brokenText {
		if b>>i&1 == 1 {
			out = append(out, t)
		}
	}
	return strings.Join(out, "; ")
}

// Check finds what a state violates.
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

// lost looks for the newest version that is no dead letter: it must be in the sink, or something
// must still carry it or a newer one.
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

// live are the versions that a message or a manifest carries.
func (m *Model) live(s *State) KeySet {
	return m.keys(s.held() | s.notGone())
}

// sent reports whether somebody ever sent k.
func (m *Model) sent(k Key) bool {
	return slices.ContainsFunc(m.Bounds.Messages, func(msg Message) bool { return !msg.Spare && msg.Keys.Has(k) })
}

// Settled reports that nothing is under way: no message, no flight, no lease, nothing pending, a
// row that will expire. Dead letters may be parked.
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

// calm reports that no invocation of index is under way, nor a request or a write of one.
func (s *State) calm() bool {
	return !slices.ContainsFunc(s.Execs[:], func(f Exec) bool { return f.Phase != Waiting }) &&
		s.Requests == [maxRequests]Request{} && s.Writes == [maxWrites]RowWrite{}
}
