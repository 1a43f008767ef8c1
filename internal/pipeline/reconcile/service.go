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
// required, apart from the exceptions of Looker. It is safe for concurrent use.
type Service struct {
	Looker
	Scanner  shard.Scanner
	Sink     sink.Sink
	Journal  journal.Journal
	NewToken func() shard.Token // random, new at each call
}

// Outcome is the result for a document that differs. In a dry run it is the expected result.
type Outcome string

// The outcomes.
const (
	Raised     Outcome = "raised"     // the row now has the sink's version
	Reasserted Outcome = "reasserted" // the delete was written again
	Resync     Outcome = "resync"     // only the source can send it again
	Later      Outcome = "later"      // it is being written, or keeps changing: compare again
	Moving     Outcome = "in_motion"  // it is being written, or will be: compare it again
	Left       Outcome = "left"       // lull did not write it: an operator decides whether to remove it
	Failed     Outcome = "failed"     // with an error
)

// Order says what to compare.
type Order struct {
	Collection shard.Collection
	DryRun     bool
	By         string        // the operator, for the audit
	From       Place         // where the page before ended
	Limit      int           // documents and rows of a page, 1 to 10,000; 0 is 5,000
	Keys       []shard.DocID // compares only these, in one page; overrides Sample
	Sample     int           // compares this many random committed rows, in one page; 0 for all documents
	Seed       string        // random, for Sample
}

// Place is where a page of a comparison begins. The zero Place is the beginning.
type Place struct {
	Rows  bool   `json:"rows,omitempty"`  // the documents of the sink are done
	After string `json:"after,omitempty"` // the last document's id, or the table's cursor
}

// Page is what a page of a comparison found.
type Page struct {
	Report
	Lines []Line // documents that differ or are in motion
	Seen  []Copy // documents of the sink, with those that lull did not write
	Next  *Place // where the next page begins, nil at the end
}

// Copy is a document in the sink. InSink is zero if its mark cannot be read.
type Copy struct {
	Doc shard.DocID
	shard.InSink
}

// Line is a document that differs.
type Line struct {
	Finding
	Outcome Outcome
	Err     error // Failed
}

// Report has the counts of a comparison.
type Report struct {
	Rows      int             `json:"rows"`      // of the collection
	Documents int             `json:"documents"` // in the sink
	Waiting   int             `json:"waiting"`   // differ, and are being written or will be
	Outcomes  map[Outcome]int `json:"outcomes"`  // of the documents that differ
}

const (
	// MaxPage is how many documents and rows a page may have.
	MaxPage     = 10_000
	defaultPage = MaxPage / 2
	// together is how many documents are compared with one request.
	together = 100
	// maxLines ends a page, so that its answer stays small.
	maxLines = 200
	// maxTime ends a page, so that it stays short.
	maxTime = 20 * time.Second
)

// Compare compares a page of a collection. The pages read the documents of the sink first, which
// may be newer than their rows or deleted in them. Then they read the rows, whose documents may be
// missing. A page may be compared again: what an earlier call repaired does not differ any more.
func (s *Service) Compare(ctx context.Context, o Order) (Page, error) {
	whole := *s
	whole.Whole = true
	r := &run{Service: &whole, Order: o, began: s.Clock.Now(), at: o.From}
	r.page.Outcomes = map[Outcome]int{}
	call, cancel := s.Clock.Deadline(ctx, s.Config.Index.SinkDeadline)
	err := s.Sink.Ping(call)
	cancel()
	if err != nil && !errors.Is(err, sink.ErrDenied) { // the caller may lack this right, and still may read
		return r.page, fmt.Errorf("sink %s does not answer, nothing was changed: %w", s.SinkName, err)
	}
	// The table is asked before the sink is read, so that an unreachable table is reported at once.
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
		err = nil // the next page meets an error again, and this one says what was repaired
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
	at     Place // how far it is
	second bool  // the sink's documents are done
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

// limit is how many documents and rows the page may have.
func (r *run) limit() int { return cmp.Or(r.Limit, defaultPage) }

// reached notes how far the page is after n more documents or rows, and returns errFull at its end.
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

// rowsThen finds rows whose documents are missing in the sink. The other rows are already compared.
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
		var docs []shard.DocID
		ours := 0
		for _, row := range rows {
			if !r.ours(row.Doc, r.Collection) {
				continue
			}
			ours++
			if row.Committed != "" && row.CommittedOp != shard.Delete || begun(row) {
				docs = append(docs, row.Doc)
			}
		}
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
	return r.compare(ctx, gone, make([]stored, len(gone)))
}

// compare compares some documents with copies that were read a moment ago. If a document differs,
// it reads it again, the row first, and handles the difference.
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

// deal repairs one document, or lists it.
func (r *run) deal(ctx context.Context, f Finding) error {
	line := Line{Finding: f}
	switch f.Difference {
	case shard.NoDifference:
		return nil
	case shard.OtherClass:
		if r.second && f.Document != nil {
			return nil // without a mark: sinkFirst reported it
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
	// After a failed call the next document may succeed. After the end of the context it cannot.
	return ctx.Err()
}
