// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/searchable"
)

// API has a function for each operation of a stack. All functions are safe for concurrent use. A
// field is the whole declaration of an operation: its type says what is asked and answered, and its
// tag is its name on the wire. [Handler] serves all operations, and [Client] asks for them.
type API struct {
	// Publish sends messages to the queues of the sinks of their collections. Resyncs go to the
	// bulk lane.
	Publish Operation[Publication, Published] `wire:"publish"`
	// Forms lists the forms in which a message may be written: one for each source and collection.
	Forms Question[Forms] `wire:"forms"`
	// Compose writes a message in the form that the settings decode. It sends nothing. It returns
	// ErrInput if the settings decode no message that describes such a change.
	Compose Operation[Composition, Composed] `wire:"compose"`
	// Get reads a document back from its sink, or ErrNotFound.
	Get ByKey[Document] `wire:"get"`
	// Progress reads the rows of a document, one for each sink. It asks no sink.
	Progress ByKey[Progress] `wire:"progress"`
	// Searchable says, for each sink, whether a search finds a version of a document, and waits for it
	// if the question says so.
	Searchable Operation[searchable.Question, searchable.Answer] `wire:"searchable"`
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
	// Reset withdraws the committed version of a document, for example one that is far too high. So
	// versions that are stale because of it are accepted again. It returns ErrNotFound if nothing is
	// committed.
	Reset Operation[ResetOrder, Resetted] `wire:"reset"`
	// Pause stops all claims for sinks until Resume. An error names the sinks that failed.
	Pause Operation[PauseOrder, PauseResult] `wire:"pause"`
	// Object says how far an object of many documents was read. It can also abort or reset the
	// reading.
	Object Operation[ObjectOrder, ObjectResult] `wire:"object"`
	// Resume ends pauses. An error names the sinks that failed.
	Resume Operation[PauseOrder, PauseResult] `wire:"resume"`
	// Rescue starts a flight from the manifest of a stuck flight. It returns ErrNotFound if there is
	// no such flight, or if nothing remains in it to rescue.
	Rescue ByID[flight.ID, Rescued] `wire:"rescue"`
	// Rebuild does the next step of a rebuild, or returns the cursor with which the rebuild begins:
	// see RebuildJob. It returns ErrNotFound if no rebuild is under way.
	Rebuild Operation[RebuildOrder, RebuildStep] `wire:"rebuild"`
	// Rebuilds lists the rebuilds that are under way, by sink.
	Rebuilds Question[[]RebuildProgress] `wire:"rebuilds"`
	// Reconcile compares a page of a collection with its rows. It raises rows that are older than
	// the sink, and repeats deletes that the sink has undone. A page may be repeated.
	Reconcile Operation[ReconcileOrder, ReconcilePage] `wire:"reconcile"`
	// Archived measures the part of the archive that a replay would read. It refuses the orders that
	// Replay would refuse.
	Archived Operation[ReplayOrder, archive.Size] `wire:"archived"`
	// Replay sends the next part of the archive again. After an error, repeat the step.
	Replay Operation[ReplayOrder, ReplayStep] `wire:"replay"`
	// Backfill does the next step of copying documents from one sink of a collection to another. A
	// step may be repeated.
	Backfill Operation[BackfillOrder, BackfillStep] `wire:"backfill"`
	// Check compares a page of an export of the source with the sink. It only reads.
	Check Operation[CheckOrder, Checked] `wire:"check"`
	// AskSource compares documents with what their source shows, by the source's setting fetch. It
	// only reads.
	AskSource Operation[SourceOrder, SourceAnswers] `wire:"ask-source"`
	// Unsearchable counts the documents with values that the sink's engine did not index, so that
	// searches do not find these values.
	Unsearchable Operation[UnsearchableQuery, Unsearchable] `wire:"unsearchable"`
	// Remove deletes documents from the sink that the source does not have. It skips a document
	// that changed since the audit saw it.
	Remove Operation[RemoveOrder, Removed] `wire:"remove"`
	// Forget does the next step of removing a document wherever lull keeps it. From then on lull
	// refuses all versions of the document. A step may be repeated. The last step returns ErrNotFound
	// if lull knows nothing about the document.
	Forget Operation[ForgetOrder, ForgetStep] `wire:"forget"`
	// TakeJob takes the lease of a job. The steps of a job are the operations above; the program that
	// runs the job keeps the job's state with TakeJob, SaveJob and EndJob.
	TakeJob Operation[job.Claim, job.Lease] `wire:"take-job"`
	// SaveJob stores the progress of a job.
	SaveJob Order[job.Lease] `wire:"save-job"`
	// EndJob stores how a job ended.
	EndJob Order[job.Lease] `wire:"end-job"`
	// Jobs lists the jobs that run, and the last jobs that ran, the newest last.
	Jobs Question[[]job.State] `wire:"jobs"`
	// StopJob stops a job at its next save. The same command continues it. It returns ErrNotFound
	// if there is no such job.
	StopJob Order[JobOrder] `wire:"stop-job"`
	// DropJob deletes the progress of a job, so that the same command begins again. It returns
	// ErrNotFound if there is no such job, and another error if the job runs.
	DropJob Order[JobOrder] `wire:"drop-job"`

	// Parts returns the number of parts that the documents are spread over, or 0 if the stack has all
	// of them. It is nil if this program does not have the settings of the stack.
	Parts func() int
	// Size estimates how many rows and bytes the table has. It is nil if reading the table costs
	// nothing, and in a Client.
	Size func(ctx context.Context) (rows, bytes int64, err error)
}
