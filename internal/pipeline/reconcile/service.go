package reconcile

import (
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
	Moving     Outcome = "in_motion"  // it is being written, or will be; reported in an audit only
	Left       Outcome = "left"       // lull did not write it: an operator decides whether to remove it
	Failed     Outcome = "failed"     // with an error
)

// Order says what to compare.
type Order struct {
	Collection shard.Collection
	DryRun     bool
	Rate       float64    // documents a second, 0 for no limit
	By         string     // the operator, for the audit
	Found      func(Line) // called with every document that differs, from one goroutine; may be nil
	Audit      *Audit     // nil for a comparison of lull's own documents from the beginning
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
	DryRun    bool            `json:"dry_run,omitempty"`
}

// Remaining is how many documents still differ.
func (r Report) Remaining() int {
	n := r.Outcomes[Resync] + r.Outcomes[Later] + r.Outcomes[Failed] + r.Outcomes[Left]
	if r.DryRun {
		n += r.Outcomes[Raised] + r.Outcomes[Reasserted]
	}
	return n
}

// ErrUnknown says that no setting, no row and no document has this collection.
var ErrUnknown = errors.New("no such collection")

// page is how many documents are compared together.
const page = 100

// Run compares a collection. First it reads the documents of the sink, which may be newer than
// their rows or deleted in them. Then it reads the rows, whose documents may be missing. The report
// is valid with an error, too: what it counts was done.
func (s *Service) Run(ctx context.Context, o Order) (Report, error) {
	if o.Audit != nil {
		whole := *s
		whole.Whole, s = true, &whole
	}
	r := &run{Service: s, Order: o, report: Report{Outcomes: map[Outcome]int{}, DryRun: o.DryRun}}
	if o.Audit != nil {
		r.audit = *o.Audit
	}
	call, cancel := s.Clock.Deadline(ctx, s.Config.Index.SinkDeadline)
	err := s.Sink.Ping(call)
	cancel()
	if err != nil && !errors.Is(err, sink.ErrDenied) { // the caller may lack this right, and still may read
		return r.report, fmt.Errorf("sink %s does not answer, nothing was changed: %w", s.SinkName, err)
	}
	// The table is asked before the sink is read, so that an unreachable table is reported at once.
	health, err := s.health(ctx)
	if err != nil {
		return r.report, fmt.Errorf("the table does not answer, nothing was changed: %w", err)
	}
	if err := s.lets(health, o.Collection); err != nil && !o.DryRun {
		return r.report, fmt.Errorf("nothing was changed: %w", err)
	}
	if err := r.both(ctx); err != nil {
		return r.report, err
	}
	if r.report.Rows+r.report.Documents == 0 && o.Audit == nil && !s.known(o.Collection) {
		return r.report, fmt.Errorf("%s: %w in the settings, the table or sink %s", o.Collection, ErrUnknown,
			s.SinkName)
	}
	return r.report, nil
}

// known reports whether the settings name a collection.
func (s *Service) known(c shard.Collection) bool {
	_, named := s.Config.Collections[string(c)]
	return named || s.Config.DefaultCollection == string(c) || len(s.Config.SourcesOf(string(c))) > 0
}

// run is one comparison.
type run struct {
	*Service
	Order
	audit  Audit // zero if there is none
	report Report
	second bool // the sink's documents are done
}

// sinkFirst compares the documents of the sink with their rows.
func (r *run) sinkFirst(ctx context.Context) error {
	docs, copies := make([]shard.DocID, 0, page), make([]stored, 0, page)
	flush := func() error {
		if len(docs) == 0 {
			return nil
		}
		defer func() { docs, copies = docs[:0], copies[:0] }()
		r.report.Documents += len(docs)
		if err := r.compare(ctx, docs, copies); err != nil {
			return err
		}
		r.seen(docs, copies)
		return nil
	}
	err := r.Looker.Documents(ctx, r.Collection, r.audit.From.After, func(s sink.Stored) error {
		docs, copies = append(docs, r.row(s.Doc)), append(copies, storedOf(s, true))
		if len(docs) == page {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return fmt.Errorf("compare the documents of sink %s: %w", r.SinkName, err)
	}
	return nil
}

// rowsThen finds rows whose documents are missing in the sink. The other rows are already compared.
func (r *run) rowsThen(ctx context.Context) error {
	r.second = true
	cursor := ""
	if r.audit.From.Rows {
		cursor = r.audit.From.After
	}
	for {
		rows, next, err := r.scan(ctx, cursor)
		if err != nil {
			return fmt.Errorf("read the table: %w", err)
		}
		var docs []shard.DocID
		for _, row := range rows {
			if !r.ours(row.Doc, r.Collection) {
				continue
			}
			r.report.Rows++
			if row.Committed != "" && row.CommittedOp != shard.Delete || begun(row) {
				docs = append(docs, row.Doc)
			}
		}
		for part := range slices.Chunk(docs, page) {
			if err := r.missing(ctx, part); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
		r.reached(Place{Rows: true, After: cursor})
	}
}

func (r *run) scan(ctx context.Context, cursor string) (rows []shard.Row, next string, err error) {
	const many = 1000
	err = backoff.Do(ctx, r.Clock, func() (err error) {
		rows, next, err = r.Scanner.Scan(ctx, 0, 1, cursor, many)
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
	if err := r.compare(ctx, gone, make([]stored, len(gone))); err != nil {
		return err
	}
	return r.pace(ctx, len(docs)-len(gone))
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
	return r.pace(ctx, len(docs))
}

// pace waits as long as n documents take at the rate.
func (r *run) pace(ctx context.Context, n int) error {
	if r.Rate <= 0 {
		return ctx.Err()
	}
	return r.Clock.Sleep(ctx, time.Duration(float64(n)/r.Rate*float64(time.Second)))
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
		r.report.Waiting++
		if r.Audit != nil && r.Found != nil { // an audit will compare it again
			r.Found(Line{Finding: f, Outcome: Moving})
		}
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
	r.report.Outcomes[line.Outcome]++
	if r.Found != nil {
		r.Found(line)
	}
	// After a failed call the next document may succeed. After the end of the context it cannot.
	return ctx.Err()
}
