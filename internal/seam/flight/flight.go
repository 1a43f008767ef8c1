// Package flight holds what waits together: the messages of one receive batch, in one manifest,
// driven by one Step Functions execution. A flight owns nothing that could be lost: if it dies, SQS
// shows its messages again.
package flight

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// ID names a flight: a ULID, so that ids sort by time.
type ID string

// NewID is a fresh id: a ULID with secret randomness. So ids of all who start flights sort by time
// and never meet.
func NewID(now time.Time) ID {
	return ID(ulid.MustNew(ulid.Timestamp(now), rand.Reader).String())
}

// Lane is one ingest queue of a sink.
type Lane string

// Live goes first; Bulk is for resyncs.
const (
	Live Lane = "live"
	Bulk Lane = "bulk"
)

// Kind is the kind of state machine that runs an execution.
type Kind string

// Express ends an execution after five minutes and is paid by time, Standard by its transitions.
const (
	Express  Kind = "express"
	Standard Kind = "standard"
)

// SchemaVersion is the newest manifest and state schema this code understands. A newer one leaves
// the flight to redelivery.
const SchemaVersion = 1

// Manifest is what one receive invocation holds.
type Manifest struct {
	Schema   int
	Flight   ID
	Sink     string
	Lane     Lane
	Received time.Time // when the batch was polled, at the latest: the twelve hours of SQS count from it
	Records  []Record
}

// Record is one message as received, with its events that are not done yet.
type Record struct {
	Message queue.Message
	Events  []Entry
}

// Entry is one held event of a message.
type Entry struct {
	Index int // position among the message's events, skipped ones counted
	Doc   shard.DocID
	Key   shard.OrderKey
	Class shard.Class
	Op    shard.Operation
	Due   shard.Micros
	// Admitted is when its row accepted it, or a version behind which it waits; 0 where no row was
	// asked, because the table was away (`tableOutage: open`).
	Admitted shard.Micros
}

// Turns says for each record when the flight looks at it first: when the newest version of one of
// its documents is due. Older versions wait for it.
func (m *Manifest) Turns() []shard.Micros {
	newest := make(map[shard.DocID]*Entry)
	for _, e := range m.Entries() {
		if newest[e.Doc] == nil || e.Key > newest[e.Doc].Key {
			newest[e.Doc] = e
		}
	}
	turns := slices.Repeat([]shard.Micros{math.MaxInt64}, len(m.Records))
	for r, e := range m.Entries() {
		turns[r] = min(turns[r], newest[e.Doc].Due)
	}
	return turns
}

// Entries are all entries in their order, each with the number of its record.
func (m *Manifest) Entries() iter.Seq2[int, *Entry] {
	return func(yield func(int, *Entry) bool) {
		for r := range m.Records {
			for i := range m.Records[r].Events {
				if !yield(r, &m.Records[r].Events[i]) {
					return
				}
			}
		}
	}
}

// Open reports that the entry is written without its row.
func (e Entry) Open() bool { return e.Admitted == 0 }

// Items is how many entries the manifest holds: the length of the bitmap [Remaining].
func (m *Manifest) Items() int {
	n := 0
	for i := range m.Records {
		n += len(m.Records[i].Events)
	}
	return n
}

// State travels through the state machine: bounded, no bodies, no receipt handles. The names of its
// fields belong to SchemaVersion: executions that older code began go on under newer code.
type State struct {
	Schema       int          `json:"schema"`
	Flight       ID           `json:"flight"`
	WakeAt       string       `json:"wakeAt"`       // RFC 3339, whole seconds, rounded up
	VisibleUntil shard.Micros `json:"visibleUntil"` // when its messages become visible, but for Extended
	Remaining    Remaining    `json:"left"`         // entries that are not done; empty when the flight is done
	Turn         int          `json:"turn"`
	Leg          int          `json:"leg"`     // how many executions came before this one
	Started      shard.Micros `json:"started"` // when this execution began
	Done         bool         `json:"done"`

	// Entered is when the state machine entered this turn's state, by its own clock; 0 where it does
	// not say. The state that travels does not hold it.
	Entered shard.Micros `json:"-"`
	// Kind is what runs this execution, express or standard: whoever starts one chooses, and then the
	// state machine says so. Empty in states that older code began.
	Kind Kind `json:"kind,omitempty"`
	// Extended is how long after its turn ([Manifest.Turns]) a message becomes visible that is held for
	// longer than the queue's visibility. 0 where receive extended none. Older code leaves it out, and
	// extends them again.
	Extended time.Duration `json:"extended,omitempty"`

	// Panicked are the entries whose last request ended in a panic of the sink's client: each goes
	// alone the next time.
	Panicked Remaining `json:"panicked,omitzero"`
	// Outage marks a flight that writes without rows while the table is away (`tableOutage: open`).
	// Nothing in it is acknowledged.
	Outage bool `json:"open,omitempty"`
	// ReassertAfter is when every write of an outage has certainly ended; 0 while the table is
	// away.
	ReassertAfter shard.Micros `json:"reassertAfter,omitempty"`

	// Sample are documents that index compares with their rows, instead of a flight's turn: prune
	// picks them. Older code takes such an execution for one whose manifest is gone, and ends it.
	Sample []shard.DocID `json:"sample,omitempty"`

	// Slot and SlotEnd are the time that the flight has of the budget of a sink that throttles; 0
	// for none. Older code leaves them out, and the flight asks for a slot again.
	Slot    shard.Micros `json:"slot,omitempty"`
	SlotEnd shard.Micros `json:"slotEnd,omitempty"`

	// Probes is the open_until that this flight wrote when it opened its sink's circuit: it stays to
	// probe, where others leave. 0 for none.
	Probes shard.Micros `json:"probes,omitempty"`
}

// TurnLate is how much later than its wake a turn may begin without extending anew what was
// extended for it.
const TurnLate = 5 * time.Second

// Visible is when a message becomes visible whose turn ([Manifest.Turns]) comes then, in a lane
// with this window. What would last for a turn that begins in time was not extended.
func (s State) Visible(turn shard.Micros, window time.Duration) shard.Micros {
	until := turn.Add(s.Extended)
	if s.Extended == 0 || until.Add(-window-TurnLate) <= s.VisibleUntil {
		return s.VisibleUntil
	}
	return until
}

// Together is the latest of the times that lie within a window after the first: one wake for all of
// them delays none for longer than its window may anyway. A second of it is for rounding the wake
// up.
func Together(first shard.Micros, times []shard.Micros, window time.Duration) shard.Micros {
	last := first
	for _, t := range times {
		if t <= first.Add(window-time.Second) {
			last = max(last, t)
		}
	}
	return last
}

// Wake is WakeAt as a time; the zero time where it cannot be read.
func (s State) Wake() time.Time {
	t, _ := time.Parse(time.RFC3339, s.WakeAt) // zero beside an error
	return t
}

// WakeText rounds up to whole seconds: Step Functions cuts fractions off, and nothing is due
// earlier than it is due.
func WakeText(t time.Time) string {
	part := time.Duration(t.Nanosecond())
	return t.Add(queue.WholeSeconds(part) - part).UTC().Format(time.RFC3339)
}

// Store keeps manifests. It is safe for concurrent use.
type Store interface {
	// Put writes the manifest. Writing the same flight again replaces it.
	Put(ctx context.Context, m *Manifest) error
	// Get returns the manifest, ErrNotFound, or ErrSchema for one of a newer schema. Its caller may
	// change it.
	Get(ctx context.Context, id ID) (*Manifest, error)
	// Continue creates the checkpoint next-<n> beside the manifest unless it is there, and reports
	// whether this call did.
	Continue(ctx context.Context, id ID, n int, s State) (created bool, err error)
	// Delete removes the manifest and its checkpoints. Deleting what is not there is no error.
	Delete(ctx context.Context, id ID) error
	// List returns up to limit flights after the cursor, oldest first, and the cursor of the next
	// call, empty at the end. The cursor is a flight's id, the last one seen. A flight of which
	// only checkpoints are left is among them.
	List(ctx context.Context, cursor string, limit int) (flights []Stored, next string, err error)
}

// Stored is a flight as the store lists it.
type Stored struct {
	ID     ID
	Newest time.Time // when its newest object, manifest or checkpoint, was written, by the store's clock
	Legs   int       // how many executions it has gone on in: its checkpoints
}

// Errors of a Store. They are answers: asking again does not change them.
var (
	ErrNotFound = backoff.Permanent(errors.New("flight not found"))
	ErrSchema   = backoff.Permanent(errors.New("flight has a newer schema"))
)

// Launcher starts an execution. After any error it is unknown whether it runs: the messages come
// back by themselves either way, and two executions of one flight do no harm.
type Launcher interface {
	Start(ctx context.Context, s State) error
}
