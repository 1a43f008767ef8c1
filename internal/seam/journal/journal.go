// SPDX-License-Identifier: Apache-2.0

// Package journal defines the notes in which lull's functions record their decisions, one [Note]
// for each decision. Counters, logs, the output of `lull dev`, `lull explain` and the checks of the
// simulator all read the same notes. Notes never hold a document's content.
package journal

import (
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Step is the kind of a decision. The words are the design's.
type Step string

// The steps. A step marked (end) completes an event. A message may be deleted once all its events
// are complete.
const (
	Received     Step = "received"      // Count messages in one batch; Sent is when the oldest was sent
	Skipped      Step = "skipped"       // (end) by a rule of the source; Detail says which
	Admitted     Step = "admitted"      // the version is the row's pending one now; Detail "new burst" or "newer"
	Held         Step = "held"          // kept in its flight; Until is when the event is due
	Stale        Step = "stale"         // (end) the row has committed a newer version
	Duplicate    Step = "duplicate"     // (end) the row has committed this version already
	AlreadyDead  Step = "already_dead"  // (end) the version is a dead letter already
	DeadLettered Step = "dead_lettered" // (end) a dead letter was sent; Detail is "reason: why"
	Scheduled    Step = "scheduled"     // (end) stored until notbefore; Until is notbefore
	Failed       Step = "failed"        // not judged in this invocation; the message stays in the queue
	Launched     Step = "launched"      // a flight of Count messages; Until is its first wake
	// (end) Count lines of an object became messages; Detail is the object and how far lull read it
	ObjectRead  Step = "object_read"
	ObjectDone  Step = "object_done"  // (end) an object of many documents was read to its end; Detail is the object
	Archived    Step = "archived"     // Count messages are in the archive
	ArchiveLost Step = "archive_lost" // Count messages will not be in the archive; no event is lost: alarm
	LaunchLost  Step = "launch_lost"  // the flight could not start; SQS makes the messages visible again
	Superseded  Step = "superseded"   // (end) held until a newer version was committed
	Waiting     Step = "waiting"      // index waits with the document until Until; Detail says why
	LeftFlight  Step = "left_flight"  // left the flight, but not the queue; Detail says why
	// left the flight because a newer version is pending; visible again at Until
	LeftSuperseded Step = "left_superseded"
	Claimed        Step = "claimed" // this flight has the lease; Until is the end of the lease
	// the newest state of the document was fetched, of Count bytes; Detail is the source
	Fetched     Step = "fetched"
	FetchFailed Step = "fetch_failed" // fetch returned no document to write; Detail is the source and why
	// the enricher added fields to the document, which has Count bytes now; Detail is its kind
	Enriched     Step = "enriched"
	EnrichCalled Step = "enrich_called" // one request to the enricher for Count documents; Detail is the collection
	EnrichFailed Step = "enrich_failed" // the enricher gave no usable answer; Detail is the collection and why
	EnrichAway   Step = "enrich_away"   // no request goes to the enricher until Until; Detail is the collection
	Committed    Step = "committed"     // (end) written and committed; Old is the row before
	// (end) committed without a write, because the sink already has these bytes; Old is the row
	// before
	Kept           Step = "unchanged"
	Released       Step = "released"        // the sink applied nothing, so the lease was released; Detail is its answer
	Rejected       Step = "rejected"        // the sink refused the document for good, and the dead letter is stored
	OutcomeUnknown Step = "outcome_unknown" // the sink gave no answer, or none to trust; lease and claimed stay
	SinkNewer      Step = "sink_newer"      // the sink answered 409 under a lease that is still running: alarm
	ClockOff       Step = "clock_off"       // a clock is or was wrong: alarm; Detail says by how much
	// the sink refused Count operations because of the engine or the settings: alarm; Detail is its
	// answer
	SinkConfiguration Step = "sink_configuration"
	LeaseLost         Step = "lease_lost"  // COMMIT was refused, because another claim has the lease: alarm
	Deleted           Step = "deleted"     // the message was deleted from the queue
	DeleteLost        Step = "delete_lost" // the deletion failed; a redelivery will be a duplicate
	// Count messages wait only in the queue until about Until, because their sink is away
	Away Step = "away"
	// Count messages wait in the queue until about Until, because their flight found no slot at a
	// sink that throttles
	Requeued Step = "requeued"
	// the sink throttles or answers late, so lull writes at most Count thousandths of a document a
	// second; Detail is the sink's answer
	Slowed        Step = "slowed"
	Extended      Step = "extended"       // the visibility of Count messages was extended to Until
	Continued     Step = "continued"      // the flight continues in a new execution
	Ended         Step = "ended"          // the flight ended
	TwelveHours   Step = "twelve_hours"   // the flight ends before SQS's limit; its messages become visible again
	CircuitOpened Step = "circuit_opened" // the sink's circuit opened until Until
	CircuitClosed Step = "circuit_closed" // the sink is healthy again
	// a conditional write was refused, which costs a write unit too; Detail is the name of the
	// write
	RowRefused  Step = "row_refused"
	CallFailed  Step = "call_failed" // a call to a row, queue, bucket or sink failed; Detail is "what: class of the error"
	FlightLost  Step = "flight_lost" // the manifest is missing although events remain; SQS delivers their messages again
	Unreachable Step = "unreachable" // the table cannot be reached; the batch is tried again later
	Parked      Step = "parked"      // dlq stored the dead letter
	// dlq left Count messages in the dead-letter queue, because parking or returning them failed
	DeadKept Step = "dead_kept"
	// a dead letter was deleted because of a newer commit, an operator or `deadLetters: none`
	Dropped  Step = "dropped"
	Returned Step = "returned" // a message that was never tried was moved back from the dead-letter queue
	Redriven Step = "redriven" // a dead letter was sent again
	// a message says that it is a dead letter, but no function of lull sent it; lull judges the
	// message inside
	Untrusted Step = "untrusted"
	Collected Step = "collected" // prune deleted a row
	Stuck     Step = "stuck"     // prune found something that should not exist: alarm
	Enqueued  Step = "enqueued"  // prune sent a scheduled event
	// the same version came with other content
	Conflict Step = "version_conflict"
	// lull's code panicked on one message, document or request: alarm; Detail is where, and the
	// class of the panic
	Panicked Step = "panics"
	// a newer version without an answer is a dead letter and may be in the sink, so older versions wait: alarm
	Blocked Step = "blocked_by_unknown"
	Schema  Step = "unknown_schema" // newer code wrote what this code reads: alarm
	// written at once and not acknowledged (audit), during a table outage (`tableOutage: open`);
	// Detail is the sink's answer
	OutageWrite Step = "outage_write"
	Reasserted  Step = "reasserted" // the row's delete was written again, after an open outage or by an operator
	// the sink may hold an older version after an outage with `tableOutage: open`; resync this
	// document
	OutageResync Step = "outage_resync"
	Raised       Step = "raised" // an operator's reconcile raised the row to the sink's version; Detail is who asked
	// an operator made versions below the committed one acceptable again (audit); Key is the
	// committed version
	Reset Step = "reset"
	// an operator removed the document, and lull refuses older versions (audit); Detail is who, and
	// why
	Removed Step = "removed"
	// an operator copied a document to a sink from another sink of the collection (audit)
	Copied  Step = "copied"
	Paused  Step = "paused"  // an operator paused the sink (audit); Detail is who, and why
	Resumed Step = "resumed" // an operator ended the pause of the sink (audit)
	Aborted Step = "aborted" // an operator stopped the reading of an object (audit); Detail is which object, who, and why
	// the new index of a rebuild may lack Count written documents; Doc is one of them, Detail the
	// sink's answer for it
	Missed Step = "missed"
	// an operator's rebuild of a collection reached its next step (audit); Detail is which step,
	// and who
	Rebuild  Step = "rebuild"
	Replayed Step = "replayed" // an operator sends a part of the archive again (audit); Detail is which part, and who
	Sampled  Step = "sampled"  // prune gave Count documents to index for a comparison with the sink
	// a row and the sink differ, and no running work explains the difference: alarm; Detail is the
	// difference
	Drift Step = "drift"
)

// Note is one decision.
type Note struct {
	Step    Step
	At      time.Time
	Doc     shard.DocID
	Key     shard.OrderKey
	Op      shard.Operation
	Sink    string
	Lane    string
	Flight  string
	Message string // SQS message id
	Trace   string // the message's traceparent, as its sender wrote it
	Event   int    // position in the message
	Sent    time.Time
	Until   time.Time // a wake, a due time or the end of a lease, see the step
	Count   int
	Detail  string
	Letter  string    // DeadLettered, Parked: the dead letter's id
	Stack   string    // Panicked: the stack trace
	Old     shard.Row // Committed, Admitted: the row before
}

// Journal records notes. It is safe for concurrent use and must not block for long.
type Journal interface {
	Note(n Note)
}

// Discard drops all notes.
type Discard struct{}

// Note does nothing.
func (Discard) Note(Note) {}

// Tee gives each note to several journals, one after the other.
type Tee []Journal

// Note passes n to every journal.
func (t Tee) Note(n Note) {
	for _, j := range t {
		j.Note(n)
	}
}
