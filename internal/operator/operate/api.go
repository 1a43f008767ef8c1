package operate

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// API has a function for each operation of a stack. All functions are safe for concurrent use. A
// field is the whole declaration of an operation: its type says what is asked and answered, and its
// tag is its name on the wire. [Handler] serves all operations, and [Client] asks for them.
type API struct {
	// Publish sends messages to the queues of the sinks of their collections. Resyncs go to the
	// bulk lane.
	Publish Operation[Publication, Published] `wire:"publish"`
	// Forms lists, for every source and collection, the forms in which a message may be written.
	Forms Question[Forms] `wire:"forms"`
	// Compose writes a message in the form that the settings decode. It sends nothing. It returns
	// ErrInput if the settings decode no message that describes such a change.
	Compose Operation[Composition, Composed] `wire:"compose"`
	// Get reads a document back from its sink, or ErrNotFound.
	Get ByKey[Document] `wire:"get"`
	// Search finds documents in the sinks that can be searched. The answer names each sink that
	// cannot be asked. If all sinks fail, it returns an error.
	Search Operation[Search, Found] `wire:"search"`
	// Status returns how many messages wait in each place, which sinks are healthy, and how many
	// dead letters are parked.
	Status Question[Status] `wire:"status"`
	// Origins says, for each source whose documents are fetched, whether its host accepts a
	// connection. It sends no request.
	Origins Question[[]Origin] `wire:"origins"`
	// Explain says why a document is as fresh as it is.
	Explain ByKey[Explanation] `wire:"explain"`
	// Documents lists documents page by page, by their rows, without asking their sinks.
	Documents Operation[DocumentFilter, DocumentPage] `wire:"documents"`
	// InGroup finds the documents of a message group, a tenant, page by page.
	InGroup Operation[GroupQuery, GroupPage] `wire:"in_group"`
	// Unwritten finds the newest version of a document that waits or is a dead letter, and the
	// document that its sink would get. It returns ErrNotFound if there is no such version.
	Unwritten ByKey[Unwritten] `wire:"unwritten"`
	// Letters lists dead letters, oldest first, without their bodies.
	Letters Operation[LetterFilter, []Letter] `wire:"letters"`
	// LetterPage lists dead letters page by page, oldest first, without their bodies.
	LetterPage Operation[LetterQuery, LetterPage] `wire:"letter-page"`
	// LetterGroups counts dead letters by reason, up to 10,000 of them.
	LetterGroups Operation[LetterFilter, LetterGroups] `wire:"letter-groups"`
	// Letter shows a dead letter with its body, or ErrNotFound.
	Letter ByID[string, Letter] `wire:"letter"`
	// Redrive sends the next selected dead letters again, to be judged by their version. They stay
	// parked until then. A step may be repeated.
	Redrive Operation[LetterOrder, LetterResult] `wire:"redrive"`
	// Drop deletes the next selected dead letters for good. A step may be repeated.
	Drop Operation[LetterOrder, LetterResult] `wire:"drop"`
	// Cancel makes the pending version of a document, or its next scheduled event, a dead letter.
	// It returns ErrNotFound if nothing is pending, or nothing is scheduled.
	Cancel Operation[Cancellation, Letter] `wire:"cancel"`
	// Reset lets a document accept versions again that are stale because a far too high version was
	// committed. It returns ErrNotFound if nothing is committed.
	Reset Operation[ResetOrder, Resetted] `wire:"reset"`
	// Pause stops all claims for sinks until Resume. An error names the sinks that failed.
	Pause Operation[PauseOrder, PauseResult] `wire:"pause"`
	// Object says how far an object of many documents was read, or aborts that.
	Object Operation[ObjectOrder, ObjectResult] `wire:"object"`
	// Resume ends pauses. An error names the sinks that failed.
	Resume Operation[PauseOrder, PauseResult] `wire:"resume"`
	// Rescue starts a flight from the manifest of a stuck one. It returns ErrNotFound if there is
	// no such flight, or if nothing remains in it to rescue.
	Rescue ByID[flight.ID, Rescued] `wire:"rescue"`
	// Rebuild does the next step of a rebuild, or says where it begins: see RebuildJob. It returns
	// ErrNotFound if no rebuild is under way.
	Rebuild Operation[RebuildOrder, RebuildStep] `wire:"rebuild"`
	// Rebuilds lists the rebuilds that are under way, by sink.
	Rebuilds Question[[]RebuildProgress] `wire:"rebuilds"`
	// Reconcile compares a page of a collection with its rows. It raises rows that are older than
	// the sink, and repeats deletes that the sink has undone. A page may be repeated.
	Reconcile Operation[ReconcileOrder, ReconcilePage] `wire:"reconcile"`
	// Archived measures what the archive contains for a replay. It refuses what Replay would refuse.
	Archived Operation[ReplayOrder, archive.Size] `wire:"archived"`
	// Replay sends the next part of the archive again. After an error, repeat the step.
	Replay Operation[ReplayOrder, ReplayStep] `wire:"replay"`
	// Backfill does the next step of copying documents from one sink of a collection to another. A
	// step may be repeated.
	Backfill Operation[BackfillOrder, BackfillStep] `wire:"backfill"`
	// Check compares a page of an export of the source with the sink. It only reads.
	Check Operation[CheckOrder, Checked] `wire:"check"`
	// Unsearchable counts documents of which the sink's engine did not index some values, so that
	// searches do not find them.
	Unsearchable Operation[UnsearchableQuery, Unsearchable] `wire:"unsearchable"`
	// Remove deletes documents from the sink that the source does not have. It skips a document
	// that changed since the audit saw it.
	Remove Operation[RemoveOrder, Removed] `wire:"remove"`
	// Forget does the next step of removing a document wherever lull keeps it. lull refuses all of
	// its versions from then on. A step may be repeated. The last step returns ErrNotFound if lull
	// knows nothing of the document.
	Forget Operation[ForgetOrder, ForgetStep] `wire:"forget"`
	// TakeJob takes the lease of a job. The steps of a job are the operations above; the program that
	// runs the job keeps the job's state with TakeJob, SaveJob and EndJob.
	TakeJob Operation[job.Claim, job.Lease] `wire:"take-job"`
	// SaveJob stores how far a job is.
	SaveJob Order[job.Lease] `wire:"save-job"`
	// EndJob stores how a job ended.
	EndJob Order[job.Lease] `wire:"end-job"`
	// Jobs lists the jobs that run, and the last ones that ran, the newest last.
	Jobs Question[[]job.State] `wire:"jobs"`
	// StopJob stops a job at its next save. The same command continues it. It returns ErrNotFound
	// if there is no such job.
	StopJob Order[JobOrder] `wire:"stop-job"`
	// DropJob forgets how far a job is, so that the same command begins again. It returns
	// ErrNotFound, and an error if the job runs.
	DropJob Order[JobOrder] `wire:"drop-job"`

	// Size estimates how many rows and bytes the table has. It is nil if reading the table costs
	// nothing, and for another process.
	Size func(ctx context.Context) (rows, bytes int64, err error)
}

// Cancellation says what to cancel.
type Cancellation struct {
	Key       shard.DocID `json:"key"`
	Scheduled bool        `json:"scheduled,omitempty"` // the next scheduled event, not the pending version
	By        string      `json:"by"`                  // who asks, for the audit
}

// Publication is a list of messages to publish.
type Publication struct {
	Messages []queue.Outgoing `json:"messages"`
	Lane     flight.Lane      `json:"lane,omitempty"` // empty: live, or bulk for resyncs
	// Run, a ULID, makes all of them events of this resync run, and of Collection if that is set.
	Run        string `json:"run,omitempty"`
	Collection string `json:"collection,omitempty"`
	// Sink, if set, limits them to this sink of their collections.
	Sink string `json:"sink,omitempty"`
	// Unchecked also sends messages that break the contract, as an upstream would. They become dead
	// letters.
	Unchecked bool `json:"unchecked,omitempty"`
}

// Published is the result of a publication. Refused messages were not sent.
type Published struct {
	Messages int       `json:"messages"`
	Events   int       `json:"events"`
	Refused  []Refusal `json:"refused,omitempty"`
	// Sent are the events that were sent, the first thousand.
	Sent []SentEvent `json:"sent,omitempty"`
}

// SentEvent is an event of a message that was sent.
type SentEvent struct {
	Message   int         `json:"message"` // the position of its message
	Key       shard.DocID `json:"key,omitempty"`
	Version   string      `json:"version,omitempty"`
	Operation string      `json:"operation,omitempty"` // put or delete
	Skip      string      `json:"skip,omitempty"`      // why the source skips it
	Invalid   string      `json:"invalid,omitempty"`   // why it becomes a dead letter
}

// Refusal is a message that no queue took, or that breaks the contract.
type Refusal struct {
	Message int    `json:"message"` // its position
	Why     string `json:"why"`
}

// Document is a document as its sink holds it.
type Document struct {
	ID         string          `json:"id"`
	Collection string          `json:"collection"`
	Sink       string          `json:"sink,omitempty"` // the sink that holds it; empty if the question names it
	Version    string          `json:"version"`
	OrderKey   string          `json:"order_key"`
	Fence      int64           `json:"fence"`
	Indexed    time.Time       `json:"indexed_at,omitzero"`
	Document   json.RawMessage `json:"document"`
}

// Search is a plain search.
type Search struct {
	Text       string           `json:"text"`
	Field      string           `json:"field,omitempty"`      // with dots between nested names; empty for all
	Collection shard.Collection `json:"collection,omitempty"` // empty for all
	Prefix     bool             `json:"prefix,omitempty"`     // the last word may be the beginning of one
	Limit      int              `json:"limit,omitempty"`      // hits of each sink, 1 to 1,000; 0 is 10
}

// Found is the result of a search: the best hit of each sink, then the second best of each, and so
// on.
type Found struct {
	Hits []Document `json:"hits"`
	More bool       `json:"more,omitempty"` // there are more than the limit
	// Notes name the sinks that were not searched, and why.
	Notes []string `json:"notes,omitempty"`
}

// Status is the state of a stack.
type Status struct {
	Queues    []QueueStatus    `json:"queues"`
	Sinks     []SinkStatus     `json:"sinks"`
	Enrichers []EnricherStatus `json:"enrichers,omitempty"` // of the collections that have one
	Letters   int              `json:"dead_letters"`        // parked ones
	Flights   int              `json:"flights"`             // manifests
	// Scheduled counts the events that wait for their time. An event spends its last quarter of an
	// hour in a queue, and then counts as a delayed message instead.
	Scheduled int  `json:"scheduled"`
	Capped    bool `json:"capped,omitempty"` // the counts are at least this many
	// Rebuilds are the rebuilds under way.
	Rebuilds []RebuildProgress `json:"rebuilds,omitempty"`
	Pruned   time.Time         `json:"pruned_at,omitzero"` // the last start of prune
	// Flow says how the stack keeps up. It is nil if nothing measures the stack.
	Flow *Flow `json:"flow,omitempty"`
	// Wrong lists where queues and tables differ from the settings, and other problems, with the
	// fix for each.
	Wrong []string `json:"wrong,omitempty"`
}

// QueueStatus counts the messages of a queue, approximately on AWS.
type QueueStatus struct {
	Queue    string `json:"queue"`
	Sink     string `json:"sink"` // whose queue it is
	Visible  int    `json:"visible"`
	InFlight int    `json:"in_flight"`
	Delayed  int    `json:"delayed"`
	// Wrong lists how the queue differs from the settings, with the fix for each. Status.Wrong
	// contains it, too.
	Wrong []string `json:"-"`
}

// SinkStatus is the state of a sink by its health row.
type SinkStatus struct {
	Sink      string    `json:"sink"`
	Open      bool      `json:"open"` // nothing is claimed
	OpenUntil time.Time `json:"open_until,omitzero"`
	Since     time.Time `json:"since,omitzero"`  // about when it opened first; zero if it is not open
	Level     int64     `json:"level,omitempty"` // how often it opened in a row
	Rate      float64   `json:"rate,omitempty"`  // documents a second that may go to it; 0 for no limit
	// Growing says that Rate limits the sink after a pause or an outage, and doubles every few
	// seconds. Otherwise Rate exists because the sink throttles.
	Growing bool `json:"growing,omitempty"`
	// Ceiling is the setting maxDocumentsPerSecond, 0 if not set. AtCeiling says that documents
	// wait because of it.
	Ceiling   float64 `json:"ceiling,omitempty"`
	AtCeiling bool    `json:"at_ceiling,omitempty"`
	Pause     *Pause  `json:"pause,omitempty"` // nil if not paused
	// Cause is the last reason why the sink did not take every document. It contains an error class
	// and names, never content. It is empty once the sink is healthy and no longer slowed.
	Cause string `json:"cause,omitempty"`
	// PutOff is the most messages that may be invisible in its queues, outside any flight, because
	// the sink is or was away. It is 0 for a healthy sink.
	PutOff int `json:"put_off,omitempty"`
	// PutOffUntil is the time by which the last of them is received again. It is zero until the
	// sink is back.
	PutOffUntil time.Time `json:"put_off_until,omitzero"`
}

// EnricherStatus is the state of the service that enriches a collection, by its health row.
type EnricherStatus struct {
	Collection shard.Collection `json:"collection"`
	Away       bool             `json:"away"` // lull sends it only probes
	AwayUntil  time.Time        `json:"away_until,omitzero"`
	Rate       float64          `json:"rate,omitempty"` // documents a second that lull asks it about; 0 for no limit
}

// Origin is where the documents of a source are fetched from.
type Origin struct {
	Source    string `json:"source"`
	Host      string `json:"host"`                // or the bucket
	Problem   string `json:"problem,omitempty"`   // empty if it accepts a connection
	Unchecked string `json:"unchecked,omitempty"` // why the host was not tried; empty if it was
}

// Explanation is everything known about a document, with one sentence that sums it up.
type Explanation struct {
	Key       shard.DocID      `json:"key"`
	Sink      string           `json:"sink"`
	State     State            `json:"state"`
	Known     bool             `json:"known"`            // lull knows something about it, in the sink or elsewhere
	Row       map[string]any   `json:"row"`              // order keys in print, times as text
	InSink    string           `json:"in_sink"`          // the version in the sink, "" for none, "unknown: why"
	Committed string           `json:"committed"`        // order key in print
	Pending   string           `json:"pending"`          // order key in print
	Version   string           `json:"version"`          // the committed version, for people
	Flight    string           `json:"flight,omitempty"` // the flight that holds the pending version
	Quiet     time.Duration    `json:"quiet_ns"`         // the settings of its collection
	MaxWait   time.Duration    `json:"max_wait_ns"`
	Pace      time.Duration    `json:"min_interval_ns"`
	Held      []Held           `json:"held,omitempty"`      // the messages of that flight that are about the document
	Scheduled []ScheduledEvent `json:"scheduled,omitempty"` // the events that wait for their time
	Letters   []Letter         `json:"dead_letters,omitempty"`
	Decisions []Decision       `json:"decisions,omitempty"` // the latest ones, if the stack keeps them
	Sentence  string           `json:"sentence"`
	// Others are the explanations for the other sinks of the collection, if the key names no sink.
	Others []Explanation `json:"others,omitempty"`
}

// ScheduledEvent is an event that waits for its time.
type ScheduledEvent struct {
	Version   string    `json:"version"`
	OrderKey  string    `json:"order_key"`
	NotBefore time.Time `json:"not_before"`
	MessageID string    `json:"message_id"`
}

// Held is a message that waits in a flight.
type Held struct {
	MessageID string    `json:"message_id"`
	Version   string    `json:"version"`
	OrderKey  string    `json:"order_key"`
	Operation string    `json:"operation"` // put or delete
	Lane      string    `json:"lane"`
	Sent      time.Time `json:"sent_at,omitzero"`
	Due       time.Time `json:"due_at,omitzero"`
	Receives  int       `json:"receives"` // how often it was received
}

// Decision is one line of the timeline.
type Decision struct {
	At      time.Time    `json:"at"`
	Step    string       `json:"step"`
	Text    string       `json:"text"`
	Decided journal.Step `json:"decided,omitempty"` // the step as a constant, for programs
	Version string       `json:"version,omitempty"` // the version that it is about, for people
	Message string       `json:"message_id,omitempty"`
	Sent    time.Time    `json:"sent_at,omitzero"`  // when the message was sent
	Until   time.Time    `json:"until_at,omitzero"` // a due time, or the end of a wait
}

// LetterFilter selects dead letters; zero fields select everything.
type LetterFilter struct {
	ID         string            `json:"id,omitempty"`
	Reason     deadletter.Reason `json:"reason,omitempty"`
	Collection shard.Collection  `json:"collection,omitempty"`
	Key        shard.DocID       `json:"key,omitempty"`
	After      time.Time         `json:"after,omitzero"`
	Before     time.Time         `json:"before,omitzero"`
	State      deadletter.State  `json:"state,omitempty"`
}

// LetterQuery asks for a page of dead letters.
type LetterQuery struct {
	LetterFilter
	Cursor string `json:"cursor,omitempty"` // of the page before; empty for the first page
	Limit  int    `json:"limit,omitempty"`  // how many at most, 1 to 1,000; 0 is 100
}

// LetterPage is a page of dead letters. A page may contain fewer than asked, even none, and still
// have a next page, because the filter skipped the rest.
type LetterPage struct {
	Letters []Letter `json:"dead_letters"`
	Next    string   `json:"next,omitempty"` // the cursor of the next page, empty at the end
}

// LetterGroups counts dead letters.
type LetterGroups struct {
	Groups []LetterGroup `json:"groups"`           // the largest first
	Capped bool          `json:"capped,omitempty"` // there are more than were counted
}

// LetterGroup counts the dead letters of one reason.
type LetterGroup struct {
	Reason   deadletter.Reason `json:"reason"`
	Parked   int               `json:"parked"`
	Redriven int               `json:"redriven"`
	Oldest   time.Time         `json:"oldest"` // when the first of them died
	Newest   time.Time         `json:"newest"`
}

// LetterOrder asks for one step with a selection of dead letters.
type LetterOrder struct {
	LetterFilter
	DryRun bool          `json:"dry_run,omitempty"`
	Force  bool          `json:"force,omitempty"` // redrive even if it is too old to judge
	All    bool          `json:"all,omitempty"`   // an empty selection means everything
	Rate   float64       `json:"rate,omitempty"`  // messages a second of the job, 0 for no limit
	From   redrive.Place `json:"from,omitzero"`   // LetterResult.Next of the step before
	Limit  int           `json:"limit,omitempty"` // how many at most, 1 to 100; 0 is 100
	By     string        `json:"by"`              // who asks, for the audit
}

// LetterResult says what a step did.
type LetterResult struct {
	Outcomes map[string]int `json:"outcomes"`
	Lines    []LetterLine   `json:"lines"`
	Next     *redrive.Place `json:"next,omitempty"` // nil at the end
}

// LetterLine is the outcome of one dead letter.
type LetterLine struct {
	Letter  Letter `json:"dead_letter"`
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
}

// Letter is a dead letter as people see it.
type Letter struct {
	ID         string                     `json:"id"`
	Key        shard.DocID                `json:"key,omitempty"`
	OrderKey   string                     `json:"order_key,omitempty"`
	Version    string                     `json:"version,omitempty"`
	Reason     deadletter.Reason          `json:"reason"`
	Detail     string                     `json:"detail"`
	State      deadletter.State           `json:"state"`
	Sink       string                     `json:"sink"`
	Lane       string                     `json:"lane"`
	MessageID  string                     `json:"message_id"`
	Sent       time.Time                  `json:"sent_at,omitzero"`
	Died       time.Time                  `json:"died_at,omitzero"`
	Refusals   int64                      `json:"refusals,omitempty"`
	FirstError string                     `json:"first_error,omitempty"`
	LastError  string                     `json:"last_error,omitempty"`
	Redriven   time.Time                  `json:"redriven_at,omitzero"`
	Redrives   int                        `json:"redrives,omitempty"`
	Auto       int                        `json:"auto_redrives,omitempty"`
	Body       string                     `json:"body,omitempty"` // Letter only, not in lists
	Attributes map[string]queue.Attribute `json:"attributes,omitempty"`
	// Letter only: the source that decodes it, by today's settings
	Source string `json:"source,omitempty"`
}
