// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Reason says why a message is a dead letter, in one word for filters and metrics. Facts.Detail
// says more.
type Reason string

// The reasons.
const (
	Undecodable    Reason = "undecodable"            // not JSON, unknown envelope, too deep
	Contract       Reason = "contract"               // a field is missing or wrong
	VersionInvalid Reason = "version_invalid"        // missing, negative, not numeric, too long
	ClassMismatch  Reason = "version_class_mismatch" // the row has versions of another class
	TooOld         Reason = "too_old_to_judge"       // the message is older than rows are kept
	DeadDeadline   Reason = "dead_deadline"          // not written within deadDeadline
	TooFarAhead    Reason = "too_far_ahead"          // notbefore is later than retention allows
	RejectedBySink Reason = "rejected"               // the sink refused the document for good
	Refusals       Reason = "refusals"               // the sink refused the document maxRefusals times
	Payload        Reason = "payload"                // the payload by reference can never be loaded
	StaleSource    Reason = "stale_source"           // until the dead deadline, fetch returned only older states
	ReceiveCount   Reason = "receive_count"          // SQS's redrive policy moved the message
	Panic          Reason = "panic"                  // lull's code panicked on the message several times
	Cancelled      Reason = "cancelled"              // an operator cancelled the version
	EnrichRejected Reason = "enrich_rejected"        // the collection's enricher refused the document for good
)

// State says whether a stored dead letter was sent again.
type State string

// The states. A dead letter is stored until its version is committed or an operator drops the dead
// letter.
const (
	Parked   State = "parked"
	Redriven State = "redriven"
)

// Letter is a dead letter: the unchanged message and the facts.
type Letter struct {
	Facts
	Body       string
	Attributes map[string]queue.Attribute
}

// Facts describe a dead letter. No field holds document content.
type Facts struct {
	ID         string         // made from document and order key; the message's hash if there is no order key
	Reason     Reason         // why the message became a dead letter, the last time
	Detail     string         // class, status or field name; at most 200 bytes
	Doc        shard.DocID    // empty for an undecodable message
	Key        shard.OrderKey // empty for an undecodable message
	Event      int            // position among the message's events
	Sink       string
	Lane       string
	MessageID  string    // the SQS id of the message
	Hash       string    // the message's hash (see Hash); empty if an earlier version of lull stored the dead letter
	FirstSent  time.Time // when the first message was sent of which this one may be a copy
	Sent       time.Time
	Refusals   int64
	FirstError string // the error that the row had before; a row keeps only one
	LastError  string // the error of the last refusal
	Died       time.Time
	State      State
	RedrivenAt time.Time
	Redrives   int // the redrives by operators and by lull
	Auto       int // the redrives by lull, whose number is bounded
}

// Filter selects dead letters. A zero field selects every dead letter.
type Filter struct {
	Reason     Reason
	Collection shard.Collection
	Doc        shard.DocID // the document of one row, with the sink if it has one
	Document   shard.DocID // a document without a sink, for the rows of all its sinks
	After      time.Time
	Before     time.Time
	State      State
}

// Matches reports whether the facts pass the filter.
func (f Filter) Matches(l Facts) bool {
	return (f.Reason == "" || f.Reason == l.Reason) &&
		(f.Collection == "" || l.Doc != "" && f.Collection == l.Doc.Collection()) &&
		(f.Doc == "" || f.Doc == l.Doc) &&
		(f.Document == "" || f.Document == l.Doc.Plain()) &&
		(f.After.IsZero() || l.Died.After(f.After)) &&
		(f.Before.IsZero() || l.Died.Before(f.Before)) &&
		(f.State == "" || f.State == l.State)
}

// Parking is the result of storing a dead letter.
type Parking string

// The results of Park.
const (
	Fresh Parking = "fresh" // there was no dead letter with this ID
	Again Parking = "again" // this message was stored already
	Other Parking = "other" // another message was stored under this ID, and stays
)

// Store keeps dead letters: messages in S3, facts in the table. Dead letters whose messages have
// the same hash share one object. The object is deleted with the last of these dead letters. A
// Store is safe for concurrent use.
type Store interface {
	// Park stores the dead letter. If its ID is stored already, the dead letter becomes parked
	// again and keeps its counts of redrives. Park never replaces a stored message. If another
	// message of the version is stored, the dead letter keeps the facts of that message, and takes
	// the new reason, errors and time.
	Park(ctx context.Context, l Letter) (Parking, error)
	// Get returns the dead letter, or false.
	Get(ctx context.Context, id string) (Letter, bool, error)
	// Message returns the facts of the dead letters that share the message with this hash, ordered
	// by their position in the message. A dead letter that is parked or dropped during the call may
	// be missing.
	Message(ctx context.Context, hash string) ([]Facts, error)
	// List returns the facts of up to limit dead letters that pass the filter, oldest first. It
	// also returns the cursor of the next call, which is empty at the end. If List leaves a dead
	// letter out, it returns an error.
	List(ctx context.Context, f Filter, cursor string, limit int) ([]Facts, string, error)
	// Parked counts the dead letters that are parked, or were redriven before forgotten (see
	// [Facts.Shown]). It stops at atMost or soon after. more says that there may be more dead
	// letters.
	Parked(ctx context.Context, forgotten time.Time, atMost int) (n int, more bool, err error)
	// MarkRedriven records that the dead letter was sent again. The dead letter stays stored.
	MarkRedriven(ctx context.Context, id string, at time.Time, auto bool) error
	// Drop deletes the dead letter, because its version was committed or an operator asked for the
	// deletion.
	Drop(ctx context.Context, id string) error
}
