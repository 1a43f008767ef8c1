// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Service compares collections of one sink with their rows, and repairs them. All fields are
// required, apart from the exceptions of Looker. A Service is safe for concurrent use.
type Service struct {
	Looker
	Scanner  shard.Scanner
	Sink     sink.Sink
	Journal  journal.Journal
	NewToken func() shard.Token // returns a random, new token at each call
}

// Outcome is the result of a repair. In a dry run it is the expected result.
type Outcome string

// The outcomes.
const (
	Raised     Outcome = "raised"     // the row now has the sink's version
	Reasserted Outcome = "reasserted" // the delete was written again
	Resync     Outcome = "resync"     // only the source can send the document again
	Later      Outcome = "later"      // the document is being written, or keeps changing: compare it again
	Moving     Outcome = "in_motion"  // the document is being written, or will be: compare it again
	Left       Outcome = "left"       // lull did not write the document: an operator decides whether to remove it
	Failed     Outcome = "failed"     // the repair failed, with an error
)

// Order says what to compare.
type Order struct {
	Collection shard.Collection
	DryRun     bool
	By         string        // the operator, for the audit
	From       Place         // where the last page ended
	Limit      int           // number of documents and rows of a page, 1 to 10,000; 0 means 5,000
	Keys       []shard.DocID // compares only these documents, in one page; overrides Sample
	Sample     int           // compares this many random committed rows, in one page; 0 for all documents
	Seed       string        // random text that selects the rows of Sample
}

// Place is where a page of a comparison begins. The zero Place is the beginning of the comparison.
type Place struct {
	Rows  bool   `json:"rows,omitempty"`  // all documents of the sink are compared
	After string `json:"after,omitempty"` // the last document's id, or the table's cursor
}

// Page is the result of one page of a comparison.
type Page struct {
	Report
	Lines []Line // documents that differ or are being written
	Seen  []Copy // documents in the sink, also those that lull did not write
	// Absent are documents that have a row, and that the sink did not have.
	Absent []shard.DocID
	Next   *Place // where the next page begins, nil at the end
}

// Copy is a document in the sink. InSink is zero if the mark of the document cannot be read.
type Copy struct {
	Doc shard.DocID
	shard.InSink
}

// Line is a document that differs, with the outcome of its repair.
type Line struct {
	Finding
	Outcome Outcome
	Err     error // set for the outcome Failed
}

// Report has the counts of a comparison.
type Report struct {
	Rows      int             `json:"rows"`      // rows of the collection
	Documents int             `json:"documents"` // documents in the sink
	Waiting   int             `json:"waiting"`   // documents that differ, and are being written or will be
	Outcomes  map[Outcome]int `json:"outcomes"`  // number of documents that differ, by outcome
}

const (
	// MaxPage is the largest number of documents and rows of a page.
	MaxPage     = 10_000
	defaultPage = MaxPage / 2
	// together is the number of documents that are compared with one request.
	together = 100
	// maxLines is the number of lines that ends a page, so that the answer stays small.
	maxLines = 200
	// maxTime is the time that ends a page, so that a call stays short.
	maxTime = 20 * time.Second
)

// Compare compares a page of a collection. The first pages read the documents of the sink. A
// document may be newer than its row, or deleted according to its row. The later pages read the
// rows, whose documents may be missing. A caller may compare a page again: a difference that an
// earlier call repaired does not appear again.
func (s *Service) Compare(ctx context.Context, o Order) (Page, error) {
	whole := *s
	whole.Whole = true
	r := &run{Service: &whole, Order: o, began: s.Clock.Now(), at: o.From}
	r.page.Outcomes = map[Outcome]int{}
	call, cancel := s.Clock.Deadline(ctx, s.Config.Index.SinkDeadline)
	err := s.Sink.Ping(call)
	cancel()
	if err != nil && !errors.Is(err, sink.ErrDenied) { // the caller may lack the right to ping, and still may read
		return r.page, fmt.Errorf("sink %s does not answer, nothing was changed: %w", s.SinkName, err)
	}
	// The table is read before the sink, so that an unreachable table is reported at once.
	health, err := s.health(ctx)
	if err != nil {
		return r.page, fmt.Errorf("the table does not answer, nothing was changed: %w", err)
	}
	if err := s.lets(health, o.Collection); err != nil && !o.DryRun {
		return r.page, fmt.Errorf("nothing was changed: %w", err)
	}
	switch {
	case len(o.Keys) > 0:
		err = r.named(ctx, o.Keys)
	case o.Sample > 0:
		err = r.sample(ctx)
	default:
		err = r.both(ctx)
	}
	if errors.Is(err, errFull) || err != nil && r.at != o.From && ctx.Err() == nil {
		err = nil // the next page meets the error again, and this page says what was repaired
		r.page.Next = &r.at
	}
	return r.page, err
}

// Known reports whether the settings name a collection.
func (s *Service) Known(c shard.Collection) bool {
	_, named := s.Config.Collections[string(c)]
	return named || s.Config.DefaultCollection == string(c) || len(s.Config.SourcesOf(string(c))) > 0
}

// run is the comparison of one page.
type run struct {
	*Service
	Order
	page   Page
	began  time.Time
	done   int   // documents and rows that were read
	at     Place // how far the comparison is
	second bool  // all documents of the sink are compared
}

// both compares the sink with the rows, and then the rows with the sink.
func (r *run) both(ctx context.Context) error {
	if !r.From.Rows {
		if err := r.sinkFirst(ctx); err != nil {
			return err
		}
		if err := r.reached(Place{Rows: true}, 0); err != nil {
			return err
		}
	}
	return r.rowsThen(ctx)
}

var errFull = errors.New("the page is full")

// limit returns how many documents and rows the page may have.
func (r *run) limit() int { return cmp.Or(r.Limit, defaultPage) }

// reached records how far the page is after n more documents or rows. It returns errFull at the end
// of the page.
func (r *run) reached(p Place, n int) error {
	r.at, r.done = p, r.done+n
	if r.done >= r.limit() || len(r.page.Lines) >= maxLines || r.Clock.Now().Sub(r.began) >= maxTime {
		return errFull
	}
	return nil
}

// sinkFirst compares the documents of the sink with their rows.
func (r *run) sinkFirst(ctx context.Context) error {
	var docs []shard.DocID
	var copies []stored
	flush := func() error {
		if len(docs) == 0 {
			return nil
		}
		if err := r.compare(ctx, docs, copies); err != nil {
			return err
		}
		r.page.Documents += len(docs)
		for i, d := range docs {
			r.page.Seen = append(r.page.Seen, Copy{d, copies[i].InSink})
		}
		last, n := Place{After: docs[len(docs)-1].ID()}, len(docs)
		docs, copies = nil, nil
		return r.reached(last, n)
	}
	err := r.Documents(ctx, r.Collection, r.From.After, func(s sink.Stored) error {
		docs, copies = append(docs, r.row(s.Doc)), append(copies, storedOf(s, true))
		if len(docs) == together || r.done+len(docs) == r.limit() {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err != nil && !errors.Is(err, errFull) {
		return fmt.Errorf("compare the documents of sink %s: %w", r.SinkName, err)
	}
	return err
}

// rowsThen finds rows whose documents are missing in the sink. All other rows are already compared.
func (r *run) rowsThen(ctx context.Context) error {
	r.second = true
	cursor := ""
	if r.From.Rows {
		cursor = r.From.After
	}
	for {
		rows, next, err := r.scan(ctx, cursor)
		if err != nil {
			return fmt.Errorf("read the table: %w", err)
		}
		var docs, deleted []shard.DocID
		ours := 0
		for _, row := range rows {
			if !r.ours(row.Doc, r.Collection) {
				continue
			}
			ours++
			if row.Committed != "" && row.CommittedOp != shard.Delete || begun(row) {
				docs = append(docs, row.Doc)
			} else {
				deleted = append(deleted, row.Doc)
			}
		}
		r.page.Absent = append(r.page.Absent, deleted...)
		for part := range slices.Chunk(docs, together) {
			if err := r.missing(ctx, part); err != nil {
				return err
			}
		}
		r.page.Rows += ours
		if cursor = next; cursor == "" {
			return nil
		}
		if err := r.reached(Place{Rows: true, After: cursor}, len(rows)); err != nil {
			return err
		}
	}
}

func (r *run) scan(ctx context.Context, cursor string) (rows []shard.Row, next string, err error) {
	most := min(1000, r.limit()-r.done)
	err = backoff.Do(ctx, r.Clock, func() (err error) {
		rows, next, err = r.Scanner.Scan(ctx, 0, 1, cursor, most)
		return err
	})
	return rows, next, err
}

func (r *run) missing(ctx context.Context, docs []shard.DocID) error {
	marks := r.Looker
	marks.Whole = false
	copies, err := marks.copies(ctx, docs)
	if err != nil {
		return err
	}
	gone := docs[:0]
	for i, c := range copies {
		if c.absent() {
			gone = append(gone, docs[i])
		}
	}
	r.page.Absent = append(r.page.Absent, gone...)
	return r.compare(ctx, gone, make([]stored, len(gone)))
}

// compare compares documents with copies that were read a moment ago. If a document differs,
// compare reads it again, the row first, and handles the difference.
func (r *run) compare(ctx context.Context, docs []shard.DocID, copies []stored) error {
	if len(docs) == 0 {
		return nil
	}
	quiet := r.quiet()
	read, err := r.table().Read(ctx, docs, shard.Eventual)
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	if err := r.bytes(ctx, read, copies); err != nil {
		return err
	}
	var differ []shard.DocID
	for i, row := range read {
		if r.finding(row, copies[i], quiet).Difference != shard.NoDifference {
			differ = append(differ, docs[i])
		}
	}
	found, err := r.Look(ctx, differ)
	if err != nil {
		return err
	}
	for _, f := range found {
		if err := r.deal(ctx, f); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// deal repairs one document that differs, or lists it.
func (r *run) deal(ctx context.Context, f Finding) error {
	line := Line{Finding: f}
	switch f.Difference {
	case shard.NoDifference:
		return nil
	case shard.OtherClass:
		if r.second && f.Document != nil {
			return nil // the document has no mark: sinkFirst reported it
		}
		line.Outcome = Resync
	case shard.Busy, shard.Waiting:
		if begun(f.Row) && !r.DryRun && r.complete(ctx, f.Row) {
			return nil
		}
		r.page.Waiting++
		r.page.Lines = append(r.page.Lines, Line{Finding: f, Outcome: Moving})
		return nil
	case shard.Behind:
		line.Outcome, line.Err = r.raise(ctx, f)
	case shard.Undone:
		line.Outcome, line.Err = r.reassert(ctx, f)
	case shard.Stranger:
		line.Outcome = Left
	default:
		line.Outcome = Resync
	}
	if line.Err != nil {
		line.Outcome = Failed
	}
	r.page.Outcomes[line.Outcome]++
	r.page.Lines = append(r.page.Lines, line)
	// After a failed call the next document may succeed. After the end of the context no document
	// can.
	return ctx.Err()
}
