// SPDX-License-Identifier: Apache-2.0

package model

import (
	"iter"
	"math/bits"
	"slices"
)

// Key is an order key. 1 is the oldest version, MaxKey the newest, and None means no key.
type Key uint8

// The keys that are not versions, and the highest version.
const (
	None   Key = 0
	Lowest Key = 15 // the value of claimed_was if nothing was claimed before
	MaxKey Key = 3
)

// Bits is a set of small numbers. Bit n is set if the set contains n.
type Bits[E Key | int] uint8

// KeySet is a set of versions.
type KeySet = Bits[Key]

// Set is a set of messages.
type Set = Bits[int]

// Keys makes a set of versions.
func Keys(keys ...Key) KeySet {
	var set KeySet
	for _, k := range keys {
		set |= 1 << k
	}
	return set
}

// Has reports whether e is in the set.
func (s Bits[E]) Has(e E) bool { return s>>e&1 == 1 }

// Newest returns the highest number of the set, 0 for an empty set.
func (s Bits[E]) Newest() E { return E(max(bits.Len8(uint8(s))-1, 0)) }

// Down yields the numbers of the set, the highest first.
func (s Bits[E]) Down() iter.Seq[E] {
	return func(yield func(E) bool) {
		for ; s != 0; s &^= 1 << s.Newest() {
			if !yield(s.Newest()) {
				return
			}
		}
	}
}

// All yields the numbers of the set, the lowest first.
func (s Bits[E]) All() iter.Seq[E] {
	return func(yield func(E) bool) {
		for ; s != 0; s &= s - 1 {
			if !yield(E(bits.TrailingZeros8(uint8(s)))) {
				return
			}
		}
	}
}

// The sizes of a state.
const (
	maxMessages  = 6
	maxExecs     = 3
	maxReceivers = 2
	maxRequests  = 2 // requests to the sink whose sender is gone
	maxWrites    = 1 // writes of the row whose sender got no answer
	maxOpens     = 2 // flights that write during an outage of the table
)

// Token names the owner of a lease. Only equality matters: states that differ only in the names of
// tokens are one state.
type Token uint8

// Clock is a point in time, as a rank among all times in the state. Only the order matters.
type Clock uint8

// Place says where a message is.
type Place uint8

// The places of a message. If no process holds a message, the message is in the queue. The end of a
// visibility timeout is therefore not a step.
const (
	Gone      Place = iota // not sent yet, or deleted
	Queued                 // visible, or invisible although no process has its handle
	HeldPlace              // a flight or a receiver has its handle
	DeadQueue              // SQS moved the message to the dead-letter queue, because its receive count was used up
)

// DeadLetter is the state of a dead letter.
type DeadLetter uint8

// The states of a dead letter.
const (
	NoDeadLetter DeadLetter = iota
	Parked
	Redriven // sent again; the parked item still exists
)

// Phase says which step of its document an index invocation has reached.
type Phase uint8

// The phases of an index invocation.
const (
	Waiting      Phase = iota // the flight waits, or its next turn starts
	HasRead                   // index has read the row (a separate phase only if a change needs it)
	Claimed                   // index has the claim, and has not yet loaded the payload by reference
	Sent                      // the sink has the request
	Applied                   // the sink answered: applied
	Throttled                 // the sink answered: throttled, nothing was applied
	Refused                   // the sink answered: item error
	DeadLettered              // the sink refused the version for good, and the dead letter is stored
)

// Exec is an execution of a flight, with its index invocation if one runs. Several executions can
// share a flight after a double start or a forked continuation.
type Exec struct {
	Messages Set    // messages of the manifest that are still open
	Done     KeySet // versions known to be done, if a message has several events
	Phase    Phase
	Key      Key
	Token    Token
	Fence    Clock
	Hand     Key   // the value of `claimed` as it was read, if a change remembers it
	Refusals uint8 // the number of refusals in the answer to the claim
	First    bool  // the claim had its first form; set only if a change needs it
	Body     Key   // the state of the source that was loaded, if payloads are references
	Image    Key   // the bytes that the sink shows, according to the row before the claim
}

// request returns the request that the execution has sent or is about to send.
func (f Exec) request() Request { return Request{f.Key, f.Token, f.Fence, f.Body} }

// Receiver is a receive invocation after ADMIT and before its answer.
type Receiver struct {
	Hold Set // messages for a flight
	Ack  Set // messages to acknowledge
	Done KeySet
}

// Request is a write that the sink has and whose sender is gone. The sink may apply the request at
// any time, or never.
type Request struct {
	Key   Key
	Token Token
	Fence Clock
	Body  Key
}

// RowWrite is a write on its way to the table. The sender of the write no longer waits for the
// answer.
type RowWrite struct {
	Kind  WriteKind
	Key   Key
	Token Token
	Fence Clock
	Was   Key // the committed version that KEEP read
	Bytes Key // the bytes that the content of COMMIT identifies
}

// WriteKind is the kind of a row write.
type WriteKind uint8

// The writes that can arrive late.
const (
	NoWrite WriteKind = iota
	CommitWrite
	ReleaseWrite
	RejectWrite
	AdmitWrite
	ClaimWrite // explored only if clocks are modelled, because the time of the claim decides
	ClaimAgainWrite
	KeepWrite
)

// Open is a flight that writes without its row while the table is unreachable.
type Open struct {
	Key   Key
	Phase OpenPhase
}

// OpenPhase says what is known about an open flight.
type OpenPhase uint8

// The phases of an open flight.
const (
	OpenStarted OpenPhase = iota + 1 // no turn has answered, so the flight may have written or not
	OpenWritten                      // the turn that wrote has answered
	OpenLost                         // no execution runs the flight any more, but its manifest exists
)

// Sink is the state of the document in the search engine.
type Sink struct {
	Content Key   // the version in the sink; a delete counts as a version
	Fence   Clock // the external version; 0 if the sink has or remembers no version
	Body    Key   // the state of the source that the document holds, if payloads are references
	Kept    Key   // the newest version with the same bytes that the row committed without a write
}

// shows returns the newest version whose bytes the sink holds.
func (s Sink) shows() Key { return max(s.Content, s.Kept) }

// Parker is a process that stored a dead letter and is about to PARK: dlq, or receive after a dead
// deadline.
type Parker struct {
	Message Set // one message, or none
	Receive bool
}

// Budget says how many faults and how many actions of operators may still happen, by kind.
type Budget [kinds]uint8

// The kinds of faults and actions in a budget.
const (
	Crashes    = iota // crashes, lost calls and answers, unknown outcomes
	Duplicates        // duplicate messages, deliveries, starts, continuations
	Throttles
	Refusals  // item errors
	Moves     // messages that SQS moves by receive count
	Deadlines // messages that reach their dead deadline
	Redrives
	Prunes
	Outages // outages of the table
	Ages    // messages that outlive row retention while their row lives
	Stale   // reads that show an older image
	Restores
	Resets
	Samples
	Lags // loads that show an older state of the source
	kinds
)

// Look is a run of `lull index check` on the document.
type Look struct {
	Phase LookPhase
	Row   Row  // the row that the run has read
	Copy  Sink // the copy in the sink, which the run read after the row
}

// LookPhase says how far a look has come.
type LookPhase uint8

// The phases of a look.
const (
	NotLooking LookPhase = iota
	LookedAtRow
	LookedAtSink
)

// State is the state of all processes at one moment. A State is comparable and has no references.
type State struct {
	Row         Row
	Sink        Sink
	Messages    [maxMessages]Place
	DeadLetters [MaxKey + 1]DeadLetter
	Execs       [maxExecs]Exec
	Receivers   [maxReceivers]Receiver
	Requests    [maxRequests]Request
	Writes      [maxWrites]RowWrite
	Parker      Parker
	Redrive     Key  // the operator removed `dead`, and the copy is about to be sent
	Aged        Key  // messages with this version or an older one are older than rows are kept
	Young       Set  // copies that do not carry their age
	StaleDead   Key  // the version that an eventually consistent read may still show as dead
	Collect     bool // prune read the row and is about to delete it
	Source      Key  // the state that a reference shows now, if payloads are references
	Down        bool // the table is unreachable
	Opens       [maxOpens]Open
	Listed      bool   // the document is listed for resync
	Other       bool   // the other document's event is done
	Own         [4]Key // refusals of each version, if they are counted
	Backup      Row    // an earlier image of the row
	Restored    bool   // the table was restored, and no check has confirmed the row since
	Look        Look
	Seen        Key    // an operator saw this version committed, and is about to reset the document
	Forgotten   KeySet // versions that resets withdrew
	Left        Budget
}

// held returns the messages whose handle some process has.
func (s *State) held() Set {
	set := s.Parker.Message
	for _, e := range s.Execs {
		set |= e.Messages
	}
	for _, r := range s.Receivers {
		set |= r.Hold | r.Ack
	}
	return set
}

// messagesAt returns the messages in a place.
func (s *State) messagesAt(place Place) (set Set) {
	for i, p := range s.Messages {
		if p == place {
			set |= 1 << i
		}
	}
	return set
}

// move moves messages to a place.
func (s *State) move(set Set, to Place) {
	for i := range set.All() {
		s.Messages[i] = to
	}
}

// notGone returns the messages that exist.
func (s *State) notGone() Set { return ^s.messagesAt(Gone) & (1<<maxMessages - 1) }

// freeExec returns a free place for an execution, or maxExecs if there is none.
func (s *State) freeExec() int {
	if i := slices.Index(s.Execs[:], Exec{}); i >= 0 {
		return i
	}
	return maxExecs
}

// rows returns the row and its images: the backup, and the image that `lull index check` read.
func (s *State) rows() [3]*Row { return [...]*Row{&s.Row, &s.Backup, &s.Look.Row} }

// tokens visits every token of the state, always in the same order.
func (s *State) tokens(visit func(*Token)) {
	for _, r := range s.rows() {
		visit(&r.Owner)
	}
	for i := range s.Execs {
		visit(&s.Execs[i].Token)
	}
	for i := range s.Requests {
		visit(&s.Requests[i].Token)
	}
	for i := range s.Writes {
		visit(&s.Writes[i].Token)
	}
}

// times visits every time of the state.
func (s *State) times(visit func(*Clock)) {
	for _, r := range s.rows() {
		visit(&r.LeaseUntil)
		visit(&r.LastWrite)
	}
	visit(&s.Sink.Fence)
	visit(&s.Look.Copy.Fence)
	for i := range s.Execs {
		visit(&s.Execs[i].Fence)
	}
	for i := range s.Requests {
		visit(&s.Requests[i].Fence)
	}
	for i := range s.Writes {
		visit(&s.Writes[i].Fence)
	}
}

// freshToken returns a token that the state does not contain.
func (s *State) freshToken() Token {
	used := uint32(1)
	s.tokens(func(t *Token) { used |= 1 << *t })
	return Token(bits.TrailingZeros32(^used))
}

// latest returns the highest time in the state.
func (s *State) latest() (latest Clock) {
	s.times(func(c *Clock) { latest = max(latest, *c) })
	return latest
}

// add puts v into the first free place.
func add[T comparable](places []T, v T) bool {
	var free T
	i := slices.Index(places, free)
	if i >= 0 {
		places[i] = v
	}
	return i >= 0
}
