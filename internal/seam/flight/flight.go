// Package flight holds the messages of one receive batch while they wait together. They are stored
// in one manifest, and one Step Functions execution drives them. If a flight stops, no event is
// lost: SQS makes its messages visible again.
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

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// ID names a flight: a ULID, so that ids sort by time.
type ID string

// NewID returns a new id: a ULID with random bits from a secure source. Ids sort by time, and ids
// of different processes differ.
func NewID(now time.Time) ID {
	return ID(ulid.MustNew(ulid.Timestamp(now), rand.Reader).String())
}

// Lane is one ingest queue of a sink.
type Lane string

// Live is written first. Bulk is for resyncs.
const (
	Live Lane = "live"
	Bulk Lane = "bulk"
)

// Kind is the kind of state machine that runs an execution.
type Kind string

// Express ends an execution after five minutes and costs by time. Standard costs by transitions.
const (
	Express  Kind = "express"
	Standard Kind = "standard"
)

// SchemaVersion is the newest schema of manifest and state that this code understands. Code that
// reads a newer one leaves the flight's messages to redelivery.
const SchemaVersion = 1

// Manifest is what one receive invocation holds.
type Manifest struct {
	Schema   int
	Flight   ID
	Sink     string
	Lane     Lane
	Received time.Time // when the batch was received, at the latest: the twelve hours of SQS count from it
	Records  []Record
}

// Record is one received message, with its events that are not done yet.
type Record struct {
	Message queue.Message
	Events  []Entry
}

// Entry is one held event of a message.
type Entry struct {
	Index int // position among the message's events, including skipped ones
	Doc   shard.DocID
	Key   shard.OrderKey
	Class shard.Class
	Op    shard.Operation
	Due   shard.Micros
	// Admitted is when the row accepted this version, or a newer one that it waits for. It is 0 if
	// no row was asked because the table was unreachable (`tableOutage: open`).
	Admitted shard.Micros
}

// Turns returns for each record when the flight looks at it first. That is when the newest version
// of one of its documents is due. Older versions wait for the newest.
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

// Entries yields all entries in order, each with the number of its record.
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

// Open reports whether the entry is written without asking its row.
func (e Entry) Open() bool { return e.Admitted == 0 }

// Items returns how many entries the manifest holds: the length of the bitmap [Remaining].
func (m *Manifest) Items() int {
	n := 0
	for i := range m.Records {
		n += len(m.Records[i].Events)
	}
	return n
}

// State is the input of each turn. It has a bounded size, and no bodies or receipt handles. The
// names of its fields belong to SchemaVersion, because newer code continues executions that older
// code started.
type State struct {
	Schema       int          `json:"schema"`
	Flight       ID           `json:"flight"`
	WakeAt       string       `json:"wakeAt"`       // RFC 3339, whole seconds, rounded up
	VisibleUntil shard.Micros `json:"visibleUntil"` // when the flight's messages become visible, except for Extended
	Remaining    Remaining    `json:"left"`         // entries that are not done; empty when the flight is done
	Turn         int          `json:"turn"`
	Leg          int          `json:"leg"`     // how many executions this flight had before this one
	Started      shard.Micros `json:"started"` // when this execution began
	Done         bool         `json:"done"`

	// Entered is when the state machine entered this turn's state, by its own clock. It is 0 if the
	// state machine does not say. It is not part of the stored state.
	Entered shard.Micros `json:"-"`
	// Kind is the kind of state machine that runs this execution. The caller of Launcher chooses
	// it, and then the state machine reports it. It is empty in states that older code started.
	Kind Kind `json:"kind,omitempty"`
	// Extended is for messages that are held longer than the queue's visibility: how long after its
	// turn ([Manifest.Turns]) such a message becomes visible. It is 0 if receive extended none.
	// Older code drops the field, and extends the messages again.
	Extended time.Duration `json:"extended,omitempty"`

	// Panicked are the entries whose last request ended in a panic of the sink's client. The next
	// time, each is sent alone.
	Panicked Remaining `json:"panicked,omitzero"`
	// Outage marks a flight that writes without rows while the table is unreachable (`tableOutage:
	// open`). It acknowledges no message.
	Outage bool `json:"open,omitempty"`
	// ReassertAfter is when every write of an outage has certainly ended. It is 0 while the table
	// is unreachable.
	ReassertAfter shard.Micros `json:"reassertAfter,omitempty"`

	// Sample lists documents for index to compare with their rows; such an execution has no
	// messages. prune picks the documents. Older code finds no manifest for the execution, and ends
	// it.
	Sample []shard.DocID `json:"sample,omitempty"`

	// Slot and SlotEnd are the flight's slot in the budget of a sink that throttles, 0 for none.
	// Older code drops them, and then the flight asks for a slot again.
	Slot    shard.Micros `json:"slot,omitempty"`
	SlotEnd shard.Micros `json:"slotEnd,omitempty"`

	// Probes is the open_until that this flight wrote when it opened its sink's circuit. This
	// flight stays to probe the sink, while others leave. 0 for none.
	Probes shard.Micros `json:"probes,omitempty"`
}

// TurnLate is how late a turn may begin after its wake, so that its messages need not be extended
// again.
const TurnLate = 5 * time.Second

// Visible returns when a message becomes visible. turn is when its turn begins ([Manifest.Turns]),
// and window is the visibility of its lane. A message was not extended if VisibleUntil already
// covers its turn.
func (s State) Visible(turn shard.Micros, window time.Duration) shard.Micros {
	until := turn.Add(s.Extended)
	if s.Extended == 0 || until.Add(-window-TurnLate) <= s.VisibleUntil {
		return s.VisibleUntil
	}
	return until
}

// Together returns the latest of the times within a window after the first. One wake serves all of
// them and delays none by more than the window. One second of the window is for rounding the wake
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

// Wake returns WakeAt as a time, and the zero time if it cannot be read.
func (s State) Wake() time.Time {
	t, _ := time.Parse(time.RFC3339, s.WakeAt) // t is zero if there is an error
	return t
}

// WakeText rounds up to whole seconds. Step Functions drops fractions, and no event may be written
// before it is due.
func WakeText(t time.Time) string {
	part := time.Duration(t.Nanosecond())
	return t.Add(queue.WholeSeconds(part) - part).UTC().Format(time.RFC3339)
}

// Store keeps manifests. It is safe for concurrent use.
type Store interface {
	// Put writes the manifest. Writing the same flight again replaces it.
	Put(ctx context.Context, m *Manifest) error
	// Get returns the manifest. The error is ErrNotFound, or ErrSchema for a newer schema. The
	// caller may change the manifest.
	Get(ctx context.Context, id ID) (*Manifest, error)
	// Continue creates the checkpoint next-<n> beside the manifest. created is false if the
	// checkpoint existed before.
	Continue(ctx context.Context, id ID, n int, s State) (created bool, err error)
	// Delete removes the manifest and its checkpoints. It succeeds if they do not exist.
	Delete(ctx context.Context, id ID) error
	// List returns up to limit flights after the cursor, oldest first. It also returns the cursor
	// of the next call, empty at the end. The cursor is the id of the last flight seen. A flight
	// that has only checkpoints is listed too.
	List(ctx context.Context, cursor string, limit int) (flights []Stored, next string, err error)
}

// Stored is a flight as the store lists it.
type Stored struct {
	ID     ID
	Newest time.Time // when the newest of its manifest and checkpoints was written, by the store's clock
	Legs   int       // the number of its checkpoints: one for each execution after the first
}

// Errors of a Store. Trying again does not change them.
var (
	ErrNotFound = backoff.Permanent(errors.New("flight not found"))
	ErrSchema   = backoff.Permanent(errors.New("flight has a newer schema"))
)

// Launcher starts an execution. After an error it is unknown whether the execution runs. This does
// no harm: the messages become visible again, and two executions of one flight are safe.
type Launcher interface {
	Start(ctx context.Context, s State) error
}
