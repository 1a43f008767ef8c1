// Package journal is where use cases say what they decided, one Note per decision: counters, logs,
// `lull dev`'s story, `lull explain` and the simulator's oracles all read the same notes. Notes
// never hold a document's content.
package journal

import (
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Step is a decision, in the words of the design.
type Step string

// The steps. The ones marked (end) complete an event: its message may go once all its events are
// complete.
const (
	Received     Step = "received"      // Count messages in one batch; Sent is the oldest one's
	Skipped      Step = "skipped"       // (end) by the source's rule, Detail says which
	Admitted     Step = "admitted"      // pending = k now; Detail "new burst" or "newer"
	Held         Step = "held"          // kept in its flight; Until is when it is due
	Stale        Step = "stale"         // (end) committed > k, judged by receive
	Duplicate    Step = "duplicate"     // (end) committed = k, judged by receive
	AlreadyDead  Step = "already_dead"  // (end) dead = k: its dead letter is stored
	DeadLettered Step = "dead_lettered" // (end) a dead letter was sent; Detail "reason: why"
	Scheduled    Step = "scheduled"     // (end) stored until notbefore, which is Until
	Failed       Step = "failed"        // could not be judged in this invocation: back to the queue
	Launched     Step = "launched"      // a flight of Count messages; Until is its first wake
	// (end) Count lines of an object became messages, and another message reads on; Detail is the
	// object and how far it was read
	ObjectRead  Step = "object_read"
	ObjectDone  Step = "object_done"  // (end) an object of many documents was read to its end; Detail is the same
	Archived    Step = "archived"     // Count messages are in the archive
	ArchiveLost Step = "archive_lost" // Count messages will not be in the archive: alarm; nothing else is lost
	LaunchLost  Step = "launch_lost"  // manifest or execution failed: the messages come back by themselves
	Superseded  Step = "superseded"   // (end) held, and a newer version was committed
	Waiting     Step = "waiting"      // index waits for the document until Until; Detail says for what
	LeftFlight  Step = "left_flight"  // left the flight without being deleted; Detail says why
	// left the flight behind a newer pending version, until Until: mostly stale then
	LeftSuperseded Step = "left_superseded"
	Claimed        Step = "claimed" // the lease is ours; Until is its end
	// the newest state of the document was fetched, Count bytes; Detail is the source
	Fetched     Step = "fetched"
	FetchFailed Step = "fetch_failed" // nothing to write came of it: stale, missing, away; Detail is the source and why
	// the service of its collection added fields to the document, Count bytes in all; Detail is its kind
	Enriched     Step = "enriched"
	EnrichCalled Step = "enrich_called" // one request for Count documents; Detail is the collection
	EnrichFailed Step = "enrich_failed" // it had no answer of use; Detail is the collection and why
	EnrichAway   Step = "enrich_away"   // the service is asked nothing until Until; Detail is the collection
	Committed    Step = "committed"     // (end) written and committed; Old is the row before
	// (end) committed without a write: the sink shows these very bytes since Old, the row before
	Kept           Step = "unchanged"
	Released       Step = "released"        // nothing was applied, the lease is given back; Detail is the sink's answer
	Rejected       Step = "rejected"        // refused for good; the dead letter is stored
	OutcomeUnknown Step = "outcome_unknown" // no answer, or none to be trusted: lease and claimed stay
	SinkNewer      Step = "sink_newer"      // 409 under a live lease: alarm
	ClockOff       Step = "clock_off"       // a clock is wrong, or was: Detail says by how much
	// Count ops were refused for the engine's or the settings' sake, no document's: alarm; Detail is
	// the sink's answer
	SinkConfiguration Step = "sink_configuration"
	LeaseLost         Step = "lease_lost"  // COMMIT refused: somebody else is the owner
	Deleted           Step = "deleted"     // the message was deleted from the queue
	DeleteLost        Step = "delete_lost" // the deletion failed: a redelivery will be a duplicate
	// Count messages wait in the queue alone until about Until, because their sink is away
	Away Step = "away"
	// the sink throttles: from now on Count thousandths of a document a second
	Slowed        Step = "slowed"
	Extended      Step = "extended"       // visibility extended to Until, Count messages
	Continued     Step = "continued"      // the flight goes on in a new execution
	Ended         Step = "ended"          // the flight is done
	TwelveHours   Step = "twelve_hours"   // the flight ends before SQS's limit; its messages are visible again
	CircuitOpened Step = "circuit_opened" // the sink's circuit opened until Until
	CircuitClosed Step = "circuit_closed" // the sink is well again
	// a conditional write was refused (a write unit all the same); Detail is its name
	RowRefused  Step = "row_refused"
	CallFailed  Step = "call_failed" // to a row, queue, bucket or sink; Detail is "what: class of the error"
	FlightLost  Step = "flight_lost" // the manifest is gone although events remain: they are received again
	Unreachable Step = "unreachable" // the table cannot be reached; the batch is backed off
	Parked      Step = "parked"      // dlq stored the dead letter
	// dlq left Count messages in its queue: what it needs to park or return them failed
	DeadKept Step = "dead_kept"
	// a dead letter superseded by a newer commit, or dropped by an operator or by `deadLetters:
	// none`
	Dropped  Step = "dropped"
	Returned Step = "returned" // a dead letter that never ran went back to its queue
	Redriven Step = "redriven" // a dead letter was sent again
	// what says that it is a dead letter is not from a function that sends them: it is judged by
	// what it carries
	Untrusted Step = "untrusted"
	Collected Step = "collected" // prune deleted a row
	Stuck     Step = "stuck"     // prune found what should not be: alarm
	Enqueued  Step = "enqueued"  // prune sent a scheduled event
	Conflict  Step = "version_conflict"
	// the code of one message, document or request panicked; Detail is where and the class: alarm
	Panicked Step = "panics"
	Blocked  Step = "blocked_by_unknown"
	Schema   Step = "unknown_schema"
	// table outage open: written at once, not acknowledged (audit); Detail is the sink's answer
	OutageWrite Step = "outage_write"
	Reasserted  Step = "reasserted" // after an open outage, or by an operator: the row's delete was written again
	// after an open outage: the sink may hold an older version: resync this document
	OutageResync Step = "outage_resync"
	Raised       Step = "raised" // an operator's reconcile lifted the row to the sink's version; Detail is who asked
	// an operator made versions below the committed one new again (audit); Key is the committed one
	Reset Step = "reset"
	// an operator had a tombstone written: the document is gone from the sink, and older versions are
	// refused (audit); Detail is who, and why
	Removed Step = "removed"
	// an operator gave a sink what another one of the collection holds (audit)
	Copied  Step = "copied"
	Paused  Step = "paused"  // an operator paused the sink (audit); Detail is who, and why
	Resumed Step = "resumed" // an operator ended the pause of the sink (audit)
	Aborted Step = "aborted" // an operator ended the reading of an object (audit); Detail says which, who and why
	// the new index of a rebuild lacks Count documents that were written, or may lack them; Doc is one
	// of them, Detail the answer for it
	Missed Step = "missed"
	// an operator's rebuild of a collection came to a step of its own (audit); Detail says which, and who
	Rebuild  Step = "rebuild"
	Replayed Step = "replayed" // an operator sends a part of the archive again (audit); Detail says which, and who
	Sampled  Step = "sampled"  // prune handed Count documents to index, to be compared with the sink
	// a row and the sink differ, and nothing under way explains it: alarm; Detail is the difference
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
	Until   time.Time // a wake, a due time, the end of a lease: see the step
	Count   int
	Detail  string
	Letter  string    // DeadLettered, Parked: the dead letter's id
	Stack   string    // Panicked: where
	Old     shard.Row // Committed, Admitted: the row before
}

// Journal takes notes. It is safe for concurrent use and must not block for long.
type Journal interface {
	Note(n Note)
}

// Discard drops all notes.
type Discard struct{}

// Note does nothing.
func (Discard) Note(Note) {}

// Tee gives each note to several journals in turn.
type Tee []Journal

// Note passes n on.
func (t Tee) Note(n Note) {
	for _, j := range t {
		j.Note(n)
	}
}
