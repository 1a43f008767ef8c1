// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
)

// Order says what to verify. A job continues only with the same order.
type Order struct {
	Collection shard.Collection `json:"collection"`
	Sink       string           `json:"sink,omitempty"`   // the sink to verify, if the collection has several
	Export     string           `json:"export,omitempty"` // the name of the export, empty for none
	Source     string           `json:"source,omitempty"` // the source that decodes the export
	Group      string           `json:"group,omitempty"`  // the message group of the messages that are sent again
	Repair     bool             `json:"repair,omitempty"`
	Versions   bool             `json:"versions,omitempty"` // compare only versions, and no content
	// CompleteAt is the time at which the export was complete. It is zero if the export may lack
	// documents.
	CompleteAt time.Time `json:"complete_at,omitzero"`
	Sample     int       `json:"sample,omitempty"` // how many rows to compare, chosen at random; 0 for all
	// FromSource compares with the source itself, by its setting fetch, instead of an export.
	FromSource bool `json:"from_source,omitempty"`
	// Parts is the number of parts that the documents are spread over; 0 for one.
	Parts int `json:"parts.of,omitempty"`
}

// Verification is the work of one program on a job. All fields are required, except Open, Rate and
// Confirmed. It is not safe for concurrent use.
type Verification struct {
	Order

	Stack operate.API // only Check, AskSource, Publish, Reconcile and Remove are used
	Clock clock.Clock
	By    string // the operator, for the audit
	// Open opens the export at its beginning. It is required if Order names an export. The export
	// must outlive the step that opens it.
	Open func() (*feed.Export, error)
	// Rate is the rate of the job's runner: how many documents are compared a second, 0 for no
	// limit. With FromSource it is how many requests a second the source gets, 0 for
	// DefaultRequests, and the runner has no rate.
	Rate float64
	// Patience is how long the job compares the documents in motion again, if none of them comes to
	// rest.
	Patience time.Duration
	// Confirmed says that orphans may be removed. Without it, a repair that finds orphans fails
	// with Unconfirmed.
	Confirmed bool
	// MaxRemovals is how many documents the job may remove without a confirmation because their
	// source does not have them. See [step.removeGone].
	MaxRemovals int
	// Unattended says that no operator can confirm. The job then leaves the orphans that it may not
	// remove, and names them.
	Unattended bool

	in       feed.Reader
	exported map[uint64]struct{} // with CompleteAt: the documents of the export, by hash
	named    feed.Spot           // exported has the documents of the messages before this place
}

// phase is a part of the job.
type phase string

const (
	comparing phase = "export"  // the messages of the export
	walking   phase = "walk"    // the documents of the sink, and their rows
	removing  phase = "orphans" // the documents that a complete export lacks
	finished  phase = "done"
)

// Cursor is where the next step begins.
type Cursor struct {
	Phase  phase  `json:"phase"`
	Settle bool   `json:"settle,omitempty"` // compare the lists below again before the phase continues
	Run    string `json:"run"`              // the resync run of the repair

	feed.Spot                 // the place in the export
	Place     reconcile.Place `json:"place,omitzero"` // the place of the walk or of the removal

	Look    []shard.DocID           `json:"look,omitempty"`    // documents in motion
	Moving  []int                   `json:"moving,omitempty"`  // messages of the export that are in motion
	Sent    []int                   `json:"sent,omitempty"`    // messages of the export that were sent for a repair
	Orphans []operate.ReconcileCopy `json:"orphans,omitempty"` // orphans in motion
	Told    []uint64                `json:"told,omitempty"`    // hashes of the documents that the answer names

	source // with FromSource

	Wait      time.Duration `json:"wait,omitempty"`      // the wait before the next comparison of these lists
	Waited    time.Duration `json:"waited,omitempty"`    // how long it has waited since a document last came to rest
	Impatient bool          `json:"impatient,omitempty"` // the patience ended during a phase: compare again without a wait

	// The decisions of a step need these numbers. The counts of the job have them, too.
	Compared  int    `json:"compared,omitempty"`  // events of the collection in the export
	Invalid   int    `json:"invalid,omitempty"`   // events that could not be compared
	Documents int    `json:"documents,omitempty"` // documents of the sink that were compared
	Rows      int    `json:"rows,omitempty"`      // rows that were compared
	Orphaned  int    `json:"orphaned,omitempty"`  // documents that a complete export lacks
	Why       string `json:"why,omitempty"`       // why the first event was not compared
}

func (c Cursor) clone() Cursor {
	c.Look, c.Moving, c.Sent = slices.Clone(c.Look), slices.Clone(c.Moving), slices.Clone(c.Sent)
	c.Orphans, c.Told = slices.Clone(c.Orphans), slices.Clone(c.Told)
	c.source = c.source.clone()
	return c
}

// Unconfirmed is the error of a repair that would remove orphans without a confirmation.
type Unconfirmed struct{ Orphans, Documents int }

func (e *Unconfirmed) Error() string {
	return fmt.Sprintf("the source does not have %d of %d documents of the sink, and their removal is not confirmed",
		e.Orphans, e.Documents)
}

const verb = "verify"

// Job returns the job. If the job begins, run is the ULID of its resync run.
func (v *Verification) Job(run string) job.Job[Cursor, Line] {
	v.in.Open = v.Open
	id := verb + "-" + string(v.Collection)
	if v.Sink != "" {
		id += "@" + v.Sink
	}
	first := Cursor{Phase: walking, Run: run}
	if v.Export != "" {
		first.Phase = comparing
	}
	return job.Job[Cursor, Line]{ID: id, Verb: verb, Args: v.Order, First: first, Step: v.step, Final: final}
}

func final(err error) bool {
	var u *Unconfirmed
	var away *SourceAway
	var wrong *feed.InputError
	return errors.As(err, &u) || errors.As(err, &away) || errors.As(err, &wrong) || errors.Is(err, operate.ErrInput) ||
		errors.Is(err, operate.ErrNotFound)
}

// step is one step of the job.
type step struct {
	*Verification
	*Cursor
	out *job.Step[Line]
}

func (v *Verification) step(ctx context.Context, from Cursor, out *job.Step[Line]) (Cursor, bool, error) {
	if behind, err := v.nameDocuments(ctx, from); behind || err != nil {
		return from, false, err
	}
	c := from.clone()
	s := step{v, &c, out}
	var err error
	switch {
	case c.NotBefore.After(v.Clock.Now()):
		err = s.rest(ctx)
	case len(c.Ask) > 0:
		err = s.askPage(ctx)
	case c.Settle:
		err = s.settle(ctx)
	case c.Phase == comparing:
		err = s.compareExport(ctx)
	case c.Phase == walking:
		err = s.walk(ctx)
	case c.Phase == removing && v.FromSource:
		err = s.removeGone(ctx)
	case c.Phase == removing:
		err = s.removeOrphans(ctx)
	}
	return c, c.Phase == finished && !c.Settle && len(c.Ask) == 0, err
}

// next begins a phase. If documents are in motion, they are compared again before the phase.
func (s step) next(p phase) {
	s.Phase, s.Place, s.Settle = p, reconcile.Place{}, s.left() > 0
}

// limit returns how many documents or messages a step may compare: at most one second's worth of
// the rate.
func (s step) limit(most int) int {
	if s.Rate > 0 {
		return max(1, min(most, int(s.Rate)))
	}
	return most
}

// maxRepairs is the most documents a second that a repair changes.
const maxRepairs = 200

// pause waits as long as n repairs must take, at maxRepairs a second. The runner waits longer if
// the rate is lower.
func (s step) pause(ctx context.Context, n int) error {
	return s.Clock.Sleep(ctx, time.Duration(n)*time.Second/maxRepairs)
}
