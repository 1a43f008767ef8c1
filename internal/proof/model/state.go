package model

import (
	"iter"
	"math/bits"
	"slices"
)

// Key is an order key: 1 is the oldest version, None no key. The highest is MaxKey.
type Key uint8

// The keys that are not versions, and the highest version.
const (
	None   Key = 0
	Lowest Key = 15 // what claimed_was holds where nothing was claimed before
	MaxKey Key = 3
)

// Bits is a set of small numbers: bit n is n.
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

// Newest is the highest of the set, 0 for an empty one.
func (s Bits[E]) Newest() E { return E(max(bits.Len8(uint8(s))-1, 0)) }

// Down is the set, the newest first.
func (s Bits[E]) Down() iter.Seq[E] {
	return func(yield func(E) bool) {
		for ; s != 0; s &^= 1 << s.Newest() {
			if !yield(s.Newest()) {
				return
			}
		}
	}
}

// All is the set, the oldest first.
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
	maxRequests  = 2 // requests whose sender is gone
	maxWrites    = 1 // row writes whose sender got no answer
	maxOpens     = 2 // flights that write through an outage of the table
)

// Token names the owner of a lease. Only equality matters: states that differ in names are one
// state.
type Token uint8

// Clock is a point in time as a rank among all the times in the state. Only the order matters.
type Clock uint8

// Place says where a message is.
type Place uint8

// The places of a message. A message that nobody holds is in the queue: the lapse of its visibility
// is not a step of its own.
const (
	Gone      Place = iota // not sent yet, or deleted
	Queued                 // visible, or invisible with nobody who knows it
	HeldPlace              // a flight or a receiver has its handle
	DeadQueue              // moved to the dead-letter queue by its receive count
)

// DeadLetter is the state of a dead letter.
type DeadLetter uint8

// The states of a dead letter.
const (
	NoDeadLetter DeadLetter = iota
	Parked
	Redriven // sent again; the parked item is still there
)

// Phase says how far an index invocation is with its document.
type Phase uint8

// The phases of an index invocation.
const (
	Waiting      Phase = iota // the flight waits, or its next turn begins
	HasRead                   // the row was read (told apart only where a change needs it)
	Claimed                   // the claim is ours, the payload by reference is not loaded yet
	Sent                      // the sink has the request
	Applied                   // the sink answered: applied
	Throttled                 // the sink answered: refused before anything was applied
	Refused                   // the sink answered: item error
	DeadLettered              // refused for good, the dead letter is stored
)

// Exec is an execution of a flight with its index invocation, if one runs. Several can share a
// flight: double starts and forked continuations.
type Exec struct {
	Messages Set    // in the manifest and not yet dealt with
	Done     KeySet // versions known to be done, where a message has several events
	Phase    Phase
	Key      Key
	Token    Token
	Fence    Clock
	Hand     Key   // claimed as it was read, where a change keeps it in hand
	Refusals uint8 // as the claim's answer showed them
	First    bool  // the claim had the first form, where a change asks for it
	Body     Key   // the state of the source that was loaded, where payloads are references
	Image    Key   // the bytes that the sink shows, by the row before the claim
}

// request is what it has sent, or is about to send.
func (f Exec) request() Request { return Request{f.Key, f.Token, f.Fence, f.Body} }

// Receiver is a receive invocation between ADMIT and its answer.
type Receiver struct {
	Hold Set // for a flight
	Ack  Set // to be acknowledged
	Done KeySet
}

// Request is a write that the sink has and whose sender is gone: it may be applied at any time, or
// never.
type Request struct {
	Key   Key
	Token Token
	Fence Clock
	Body  Key
}

// RowWrite is a write on its way to the table, whose sender waits for no answer.
type RowWrite struct {
	Kind  WriteKind
	Key   Key
	Token Token
	Fence Clock
	Was   Key // the committed version that KEEP read
	Bytes Key // what COMMIT makes recognisable
}

// WriteKind tells row writes apart.
type WriteKind uint8

// The writes that can arrive late.
const (
	NoWrite WriteKind = iota
	CommitWrite
	ReleaseWrite
	RejectWrite
	AdmitWrite
	ClaimWrite // explored only where clocks are modelled: the claim's time decides
	ClaimAgainWrite
	KeepWrite
)

// Open is a flight that writes without its row while the table is away.
type Open struct {
	Key   Key
	Phase OpenPhase
}

// OpenPhase says what is known of an open flight.
type OpenPhase uint8

// The phases of an open flight.
const (
	OpenStarted OpenPhase = iota + 1 // no turn has answered: it may have written or not
	OpenWritten                      // the turn that wrote has answered
	OpenLost                         // no execution drives it any more; its manifest is there
)

// Sink is what the search engine holds of the document.
type Sink struct {
	Content Key   // a delete is a version
	Fence   Clock // external version; 0 where the sink has none or forgot it
	Body    Key   // the state of the source in it, where payloads are references
	Kept    Key   // the newest version with the same bytes that the row committed without a write
}

// shows is the newest version whose bytes are in it.
func (s Sink) shows() Key { return max(s.Content, s.Kept) }

// Parker is the one that stored a dead letter and is about to PARK: dlq, or receive after a dead
// deadline.
type Parker struct {
	Message Set // none or one
	Receive bool
}

// Budget is what may still go wrong or be done by operators: how often each kind.
type Budget [kinds]uint8

// The kinds of a budget.
const (
	Crashes    = iota // crashes, lost calls and answers, unknown outcomes
	Duplicates        // duplicate messages, deliveries, starts, continuations
	Throttles
	Refusals  // item errors
	Moves     // messages that SQS moves by receive count
	Deadlines // messages that reach their dead deadline
	Redrives
	Prunes
	Outages // of the table
	Ages    // messages that outlive row retention while their row lives
	Stale   // reads that show an older image
	Restores
	Resets
	Samples
	Lags // loads that show an older state of the source
	kinds
)

// Look is `lull index check` at work on the document.
type Look struct {
	Phase LookPhase
	Row   Row  // as it was read
	Copy  Sink // as it was read, after the row
}

// LookPhase says how far it is.
type LookPhase uint8

// The phases of a look.
const (
	NotLooking LookPhase = iota
	LookedAtRow
	LookedAtSink
)

// State is everything at one moment. It is comparable and has no references.
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
	Redrive     Key  // the operator took `dead` away and is about to send
	Aged        Key  // messages with this version or an older one are older than rows are kept
	Young       Set  // copies that hide their age
	StaleDead   Key  // an eventually consistent read may still show this as dead
	Collect     bool // prune read the row and is about to delete it
	Source      Key  // what a reference shows now, where payloads are references
	Down        bool // the table is unreachable
	Opens       [maxOpens]Open
	Listed      bool   // the document is listed for resync
	Other       bool   // the other document's event is done
	Own         [4]Key // refusals of each version, where they are counted
	Backup      Row    // an earlier image of the row
	Restored    bool   // the table was restored, and nobody has found the row right since
	Look        Look
	Seen        Key    // an operator saw this version committed, and is about to reset the document
	Forgotten   KeySet // resets took these versions back
	Left        Budget
}

// held is the set of messages whose handle somebody has.
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

// at are the messages in a place.
func (s *State) at(place Place) (set Set) {
	for i, p := range s.Messages {
		if p == place {
			set |= 1 << i
		}
	}
	return set
}

// put moves messages to a place.
func (s *State) put(set Set, to Place) {
	for i := range set.All() {
		s.Messages[i] = to
	}
}

// notGone are the messages that are somewhere.
func (s *State) notGone() Set { return ^s.at(Gone) & (1<<maxMessages - 1) }

// freeExec is the place for another execution, maxExecs where there is none.
func (s *State) freeExec() int {
	if i := slices.Index(s.Execs[:], Exec{}); i >= 0 {
		return i
	}
	return maxExecs
}

// rows are the row, and the images of it that somebody has.
func (s *State) rows() [3]*Row { return [...]*Row{&s.Row, &s.Backup, &s.Look.Row} }

// tokens visits every token of the state, in one order.
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

// freshToken is one that nobody has.
func (s *State) freshToken() Token {
	used := uint32(1)
	s.tokens(func(t *Token) { used |= 1 << *t })
	return Token(bits.TrailingZeros32(^used))
}

// latest is the highest time in the state.
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
