// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// BackfillOrder asks for one step of copying documents from one sink of a collection to another.
type BackfillOrder struct {
	Collection shard.Collection `json:"collection"`
	Sink       string           `json:"sink"` // the sink to fill
	// From is the sink that has the documents. It is empty for the first sink of the collection.
	From   string `json:"from,omitempty"`
	Cursor string `json:"cursor,omitempty"` // Next of the step before; empty for the first step
	Limit  int    `json:"limit,omitempty"`  // rows or documents to read at most, 1 to 1,000; 0 is 1,000
	DryRun bool   `json:"dry_run,omitempty"`
	By     string `json:"by"` // the operator, for the audit
}

// BackfillStep says what a step did.
type BackfillStep struct {
	Next string `json:"next,omitempty"` // the cursor of the next step, empty at the end
	// Outcomes counts documents: copied, there, in_motion, differs, failed. A document may count both
	// as copied and as in motion. Then a newer version of it waits in From, which the filled sink does
	// not know yet.
	Outcomes map[string]int `json:"outcomes"`
	// Lines name the documents that were not copied and need attention.
	Lines []BackfillLine `json:"lines,omitempty"`
}

// BackfillLine is a document that was not copied.
type BackfillLine struct {
	Key     shard.DocID `json:"key"` // the document's row in the sink that is filled
	Outcome string      `json:"outcome"`
	Error   string      `json:"error,omitempty"`
}

// The outcomes of a backfill.
const (
	Copied   = "copied"
	There    = "there"   // the filled sink has this version, or a newer one
	Differs  = "differs" // the document in From differs from its row
	InMotion = inMotion
	Failed   = failed
)

const (
	maxBackfill      = 1000
	backfillParallel = 16
)

// backfiller fills the sinks of collections.
type backfiller struct{ engines }

// Backfill does the next step of a backfill. First it copies the committed version of each row of
// From, including tombstones, under the same order key. Then it copies the documents of From whose
// rows are gone. A copy has the effect of an event of that version. So it never replaces a newer
// version, and may be repeated. A step returns an error if a copy has begun and is not done. Then
// repeat the step.
func (o *backfiller) Backfill(ctx context.Context, r BackfillOrder) (BackfillStep, error) {
	done := BackfillStep{Outcomes: map[string]int{}}
	all := o.Config.SinksFor(string(r.Collection))
	r.From = cmp.Or(r.From, all[0])
	var wrong error
	r.Limit, wrong = limited(r.Limit, maxBackfill, maxBackfill)
	err := cmp.Or(belongs(r.Collection), named(r.By), wrong,
		want(slices.Contains(all, r.Sink) && slices.Contains(all, r.From) && r.Sink != r.From,
			"from sink %s to sink %s: want two different ones of the collection's: %q", r.From, r.Sink, all),
		o.reached(r.From, r.Collection), o.reached(r.Sink, r.Collection))
	if err != nil {
		return done, err
	}
	if !r.DryRun {
		if err := o.reconciler(r.Sink).Takes(ctx, r.Collection); err != nil {
			return done, err
		}
	}
	b := backfill{backfiller: o, order: r, done: &done}
	if after, ok := strings.CutPrefix(r.Cursor, rowless); ok {
		return done, kind(b.documents(ctx, after))
	}
	var rows []shard.Row
	err = backoff.Do(ctx, o.Clock, func() (err error) {
		rows, done.Next, err = o.Scanner.Scan(ctx, 0, 1, r.Cursor, r.Limit)
		return err
	})
	if err != nil {
		return done, fmt.Errorf("read the table: %w", err)
	}
	if done.Next == "" {
		done.Next = rowless
	}
	return done, kind(b.page(ctx, rows))
}

// BackfillJob returns a job that fills a sink. It ignores the Cursor and the Limit of the order.
// rate is as in [job.Runner].
func BackfillJob(api API, o BackfillOrder, rate float64) job.Job[string, BackfillLine] {
	o.Cursor, o.Limit = "", 0
	args := o
	args.By = ""
	if rate > 0 {
		o.Limit = max(1, min(maxBackfill, int(rate)))
	}
	return job.Job[string, BackfillLine]{
		ID: fmt.Sprintf("backfill-%s@%s", o.Collection, o.Sink), Verb: "backfill", Args: args, Final: final,
		Tries: 10, // so many that they take longer than the lease of a copy without an answer
		Step: func(ctx context.Context, from string, s *job.Step[BackfillLine]) (string, bool, error) {
			o.Cursor = from
			step, err := api.Backfill(ctx, o)
			for outcome, n := range step.Outcomes {
				s.Count(outcome, n)
			}
			for _, l := range step.Lines {
				s.Say(l)
			}
			s.Did(step.Outcomes[Copied])
			return step.Next, step.Next == "", err
		},
	}
}

// rowless is the prefix of the cursors of the second half, which copies documents without rows. The
// id of the last document follows it. No cursor of a table begins with this text.
const rowless = "!sink:"

// backfill is one step.
type backfill struct {
	*backfiller
	order BackfillOrder

	mu     sync.Mutex
	done   *BackfillStep
	moving []shard.DocID // documents whose copies may have begun
}

func (b *backfill) count(doc shard.DocID, outcome string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done.Outcomes[outcome]++
	if outcome == InMotion || outcome == Failed && !errors.Is(err, reconcile.ErrRefused) {
		b.moving = append(b.moving, doc)
	}
	if outcome == Failed || outcome == Differs {
		line := BackfillLine{Key: doc, Outcome: outcome}
		if err != nil {
			line.Error = err.Error()
		}
		b.done.Lines = append(b.done.Lines, line)
	}
}

// to returns the document's row in the sink that is filled.
func (b *backfill) to(doc shard.DocID) shard.DocID {
	row, _ := b.Config.RowAt(doc, b.order.Sink)
	return row
}

// page copies the documents of some rows of From. One read finds the documents that the filled sink
// already has, so that repeating a backfill is cheap.
func (b *backfill) page(ctx context.Context, rows []shard.Row) error {
	var from []shard.Row
	var to []shard.DocID
	for _, r := range rows {
		own, there := b.Config.RowAt(r.Doc, b.order.From)
		if r.Doc.IsDocument() && r.Doc.Collection() == b.order.Collection && there && own == r.Doc &&
			b.Config.Ours(r.Doc) && (r.Committed != "" && !r.Committed.IsFloor() || r.Pending != "") {
			from, to = append(from, r), append(to, b.to(r.Doc))
		}
	}
	if len(from) == 0 {
		return nil
	}
	has, err := b.Shards.Read(ctx, to, shard.Eventual)
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	var lack []shard.DocID
	for i, r := range from {
		switch known := max(has[i].Committed, has[i].Pending, has[i].Dead); {
		case r.Pending > max(r.Committed, known):
			// The pending version may have been sent before the sink was added. The operator has to check
			// again later.
			b.count(to[i], InMotion, nil)
		case has[i].Committed >= r.Committed:
			b.count(to[i], There, nil)
			continue
		}
		if r.Committed > has[i].Committed && !r.Committed.IsFloor() {
			lack = append(lack, r.Doc)
		}
	}
	return b.bring(ctx, lack)
}

var errPage = errors.New("the page is full")

// documents copies the documents of From whose rows were deleted, because the documents did not
// change for as long as rows are kept. It skips documents with a row, because page has copied them.
func (b *backfill) documents(ctx context.Context, after string) error {
	look := b.looker(b.order.From)
	look.Whole = true // so that the next step can continue here, if the sink supports it
	var from, to, lack []shard.DocID
	seen := 0
	err := look.Documents(ctx, b.order.Collection, after, func(s sink.Stored) error {
		if s.Key != "" { // lull wrote it
			own, _ := b.Config.RowAt(s.Doc, b.order.From)
			from, to = append(from, own), append(to, b.to(s.Doc))
		}
		if seen++; seen == b.order.Limit {
			b.done.Next = rowless + s.Doc.ID()
			return errPage
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPage) {
		return fmt.Errorf("read sink %s: %w", b.order.From, err)
	}
	rows, err := b.Shards.Read(ctx, slices.Concat(from, to), shard.Eventual)
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	for i, doc := range from {
		switch first, has := rows[i], rows[len(from)+i]; {
		case first.Committed != "" || first.Pending != "":
		case has.Committed != "" && !has.Committed.IsFloor():
			b.count(to[i], There, nil)
		default:
			lack = append(lack, doc)
		}
	}
	return b.bring(ctx, lack)
}

// bring copies the documents of some rows, or their tombstones.
func (b *backfill) bring(ctx context.Context, lack []shard.DocID) error {
	look := b.looker(b.order.From)
	look.Whole = true
	found, err := look.Look(ctx, lack)
	if err != nil {
		return err
	}
	err = b.Parallel.Try(backfillParallel, len(found), func(i int) error {
		outcome, err := b.one(ctx, found[i])
		b.count(b.to(lack[i]), outcome, err)
		return ctx.Err()
	})
	if err != nil || b.order.DryRun {
		return err
	}
	return b.unfinished(ctx)
}

// unfinished returns an error if a copy has begun and is not done, because only a repeated step
// completes such a copy. If the sink refused the document of a copy, a line names it instead. An
// error would stop all other copies.
func (b *backfill) unfinished(ctx context.Context) error {
	rows, err := b.Shards.Read(ctx, b.moving, shard.Consistent)
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	for _, r := range rows {
		if reconcile.Copying(r) {
			return fmt.Errorf("%s: its copy has begun and is not done: %s: repeat the command", r.Doc,
				cmp.Or(r.LastError, "no answer yet"))
		}
	}
	return nil
}

// one copies one document, or its tombstone.
func (b *backfill) one(ctx context.Context, f reconcile.Finding) (string, error) {
	k, doc := f.Row.Committed, b.to(f.Row.Doc)
	gone := k == "" // the row is gone, and only the sink has the document
	if gone {
		k = f.Copy.Key
	}
	burial := reconcile.Burial{
		Doc: doc, By: b.order.By, Why: "backfill from sink " + b.order.From, DryRun: b.order.DryRun,
		Key: func(row shard.Row, c shard.InSink) (shard.OrderKey, error) {
			// If the sink was removed and added again, the document's row in it may also be gone.
			if row.Committed >= k || !row.Exists() && c.Key >= k {
				return "", unchanged(There)
			}
			if row.Dead == k {
				return "", errors.New("this version is a dead letter there: redrive it")
			}
			return k, nil
		},
	}
	switch {
	case f.Difference == shard.Waiting, f.Difference == shard.Busy:
		return InMotion, nil
	case f.Difference != shard.NoDifference:
		return Differs, fmt.Errorf("%s in sink %s: `lull index check %s --sink %s`", f.Difference, b.order.From,
			b.order.Collection, b.order.From)
	case k == "":
		return InMotion, nil // the document was deleted in the meantime
	case gone || f.Row.CommittedOp == shard.Put:
		s, found, err := b.document(ctx, f, k)
		if err != nil || !found {
			return InMotion, err
		}
		burial.Put = &s
	}
	return outcomeOf(Copied, b.reconciler(b.order.Sink).Bury(ctx, burial))
}

// document returns the document of From, with the version of k. found is false if the document has
// changed since it was compared with the row.
func (b *backfill) document(ctx context.Context, f reconcile.Finding, k shard.OrderKey) (s sink.Stored, found bool,
	err error,
) {
	s = sink.Stored{Version: k.VersionText(), Document: f.Document}
	if f.Document != nil {
		return s, true, nil
	}
	// If the sink lists documents without their content, read the whole document.
	read, found, err := b.Readers[b.order.From].Get(ctx, f.Row.Doc.Plain())
	s.Document = read.Document
	return s, found && err == nil && read.Key == f.Copy.Key.String(), err
}
