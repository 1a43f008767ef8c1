// SPDX-License-Identifier: Apache-2.0

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

// ID names a flight. An id is a ULID, so that ids sort by time.
type ID string

// NewID returns a new id: a ULID with random bits from a secure source. Ids sort by time, and ids
// of different processes differ.
func NewID(now time.Time) ID {
	return ID(ulid.MustNew(ulid.Timestamp(now), rand.Reader).String())
}

// Lane is one ingest queue of a sink.
type Lane string

// Live is the lane for current changes, which are written first. Bulk is the lane for resyncs.
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

// SchemaVersion is the newest schema of manifest and state that this code understands. If the
// schema is newer, the code leaves the flight's messages to redelivery.
const SchemaVersion = 1

// Manifest lists the records that one receive invocation holds.
type Manifest struct {
	Schema   int
	Flight   ID
	Sink     string
	Lane     Lane
	Received time.Time // the latest time at which the batch was received; the twelve hours of SQS count from here
	Records  []Record
}

// Record is one received message, with the events that are not done yet.
type Record struct {
	Message queue.Message
	Events  []Entry
}

// Entry is one held event of a message.
type Entry struct {
	Index int // position among the message's events; skipped events count too
	Doc   shard.DocID
	Key   shard.OrderKey
	Class shard.Class
	Op    shard.Operation
	Due   shard.Micros
	// Admitted is when the row accepted this version, or a newer version for which this one waits.
	// It is 0 if the table was unreachable, so that no row was asked (`tableOutage: open`).
	Admitted shard.Micros
}

// Turns returns for each record when the flight looks at the record first. That is when the newest
// version of one of the record's documents is due. Older versions wait for the newest.
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

// State is the input of each turn. It has a bounded size, and holds no bodies and no receipt
// handles. The names of the fields belong to SchemaVersion, because newer code continues executions
// that older code started.
type State struct {
	Schema       int          `json:"schema"`
	Flight       ID           `json:"flight"`
	WakeAt       string       `json:"wakeAt"`       // when the next turn begins, as RFC 3339, rounded up to whole seconds
	VisibleUntil shard.Micros `json:"visibleUntil"` // when the flight's messages become visible, except those of Extended
	Remaining    Remaining    `json:"left"`         // the entries that are not done; empty if the flight is done
	Turn         int          `json:"turn"`
	Leg          int          `json:"leg"`     // how many executions this flight had before this one
	Started      shard.Micros `json:"started"` // when this execution began
	Done         bool         `json:"done"`

	// Entered is when the state machine entered the state of this turn, by the state machine's
	// clock. It is 0 if the state machine does not say when. Entered is not part of the stored
	// state.
	Entered shard.Micros `json:"-"`
	// Kind is the kind of state machine that runs this execution. The caller of Launcher chooses
	// the kind, and then the state machine reports it. Kind is empty in states that older code
	// started.
	Kind Kind `json:"kind,omitempty"`
	// Extended is for messages that are held longer than the queue's visibility. It is how long
	// after its turn ([Manifest.Turns]) such a message becomes visible. Extended is 0 if receive
	// extended no message. Older code drops the field, and extends the messages again.
	Extended time.Duration `json:"extended,omitempty"`

	// Panicked are the entries whose last request ended in a panic of the sink's client. The next
	// time, each of these entries is sent alone.
	Panicked Remaining `json:"panicked,omitzero"`
	// Outage marks a flight that writes without rows while the table is unreachable (`tableOutage:
	// open`). It acknowledges no message.
	Outage bool `json:"open,omitempty"`
	// ReassertAfter is when every write of an outage has certainly ended. It is 0 while the table
	// is unreachable.
	ReassertAfter shard.Micros `json:"reassertAfter,omitempty"`

	// Sample lists documents for index to compare with their rows. An execution with Sample has no
	// messages. prune picks the documents. Older code finds no manifest for the execution, and ends
	// it.
	Sample []shard.DocID `json:"sample,omitempty"`

	// Slot and SlotEnd are the flight's slot in the budget of a sink that throttles. They are 0 if
	// the flight has no slot. Older code drops both, and then the flight asks for a slot again.
	Slot    shard.Micros `json:"slot,omitempty"`
	SlotEnd shard.Micros `json:"slotEnd,omitempty"`

	// Probes is the open_until that this flight wrote when it opened the circuit of its sink. This
	// flight stays to probe the sink, while other flights leave. Probes is 0 if the flight opened
	// no circuit.
	Probes shard.Micros `json:"probes,omitempty"`
}

// TurnLate is how late a turn may begin after its wake without extending its messages again.
const TurnLate = 5 * time.Second

// Visible returns when a message becomes visible. turn is when the message's turn begins
// ([Manifest.Turns]), and window is the visibility of its lane. If VisibleUntil already covers the
// turn, receive did not extend the message.
func (s State) Visible(turn shard.Micros, window time.Duration) shard.Micros {
	until := turn.Add(s.Extended)
	if s.Extended == 0 || until.Add(-window-TurnLate) <= s.VisibleUntil {
		return s.VisibleUntil
	}
	return until
}

// Together returns the latest of the times within a window after first. One wake serves all these
// times and delays none of them by more than the window. One second of the window is left for
// rounding the wake up.
func Together(first shard.Micros, times []shard.Micros, window time.Duration) shard.Micros {
	last := first
	for _, t := range times {
		if t <= first.Add(window-time.Second) {
			last = max(last, t)
		}
	}
	return last
}

// Wake returns WakeAt as a time. The time is zero if WakeAt cannot be parsed.
func (s State) Wake() time.Time {
	t, _ := time.Parse(time.RFC3339, s.WakeAt) // t is zero if there is an error
	return t
}

// WakeText returns t as text, rounded up to whole seconds. Step Functions drops fractions of a
// second, and no event may be written before it is due.
func WakeText(t time.Time) string {
	part := time.Duration(t.Nanosecond())
	return t.Add(queue.WholeSeconds(part) - part).UTC().Format(time.RFC3339)
}

// Store keeps manifests. It is safe for concurrent use.
type Store interface {
	// Put writes the manifest. A manifest of the same flight is replaced.
	Put(ctx context.Context, m *Manifest) error
	// Get returns the manifest. The error is ErrNotFound if there is no manifest, and ErrSchema if
	// its schema is newer. The caller may change the manifest.
	Get(ctx context.Context, id ID) (*Manifest, error)
	// Continue creates the checkpoint next-<n> beside the manifest. created is false if the
	// checkpoint existed before.
	Continue(ctx context.Context, id ID, n int, s State) (created bool, err error)
	// Delete removes the manifest and its checkpoints. It succeeds if they do not exist.
	Delete(ctx context.Context, id ID) error
	// List returns up to limit flights after the cursor, oldest first. It also returns the cursor
	// of the next call, which is empty at the end. The cursor is the id of the last flight in the
	// list. A flight that has only checkpoints is listed too.
	List(ctx context.Context, cursor string, limit int) (flights []Stored, next string, err error)
}

// Stored is a flight in the list of the store.
type Stored struct {
	ID     ID
	Newest time.Time // when the flight's newest object (manifest or checkpoint) was written, by the store's clock
	Legs   int       // the number of checkpoints: one for each execution after the first
}

// Errors of a Store. Trying again does not help.
var (
	ErrNotFound = backoff.Permanent(errors.New("flight not found"))
	ErrSchema   = backoff.Permanent(errors.New("flight has a newer schema"))
)

// Launcher starts an execution. After an error it is unknown whether the execution runs. This does
// no harm: the messages become visible again, and two executions of one flight are safe.
type Launcher interface {
	Start(ctx context.Context, s State) error
}
