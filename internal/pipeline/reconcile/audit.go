package reconcile

import (
	"context"
	"errors"
	"slices"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Audit makes a comparison part of a long verification. It can continue where an earlier one
// stopped, reports its progress, and includes documents that lull did not write.
type Audit struct {
	Keys    []shard.DocID       // compares only these; overrides the other fields
	Sample  int                 // compares this many random committed rows; 0 for all documents
	Seed    string              // random, for Sample
	From    Place               // where an earlier comparison stopped
	Reached func(Place, Report) // called after each page; may be nil
	Seen    func([]Copy)        // called with all documents of the sink, page by page; may be nil
}

// Place is how far a comparison got. The zero Place is the beginning.
type Place struct {
	Rows  bool   `json:"rows,omitempty"`  // the documents of the sink are done
	After string `json:"after,omitempty"` // the last document's id, or the table's cursor
}

// Copy is a document in the sink. InSink is zero if its mark cannot be read.
type Copy struct {
	Doc shard.DocID
	shard.InSink
}

// both compares the sink with the rows and the rows with the sink, or what the audit asks for.
func (r *run) both(ctx context.Context) error {
	docs, sample := r.audit.Keys, r.audit.Sample
	if len(docs) == 0 && sample == 0 {
		if !r.audit.From.Rows {
			if err := r.sinkFirst(ctx); err != nil {
				return err
			}
			r.reached(Place{Rows: true})
		}
		return r.rowsThen(ctx)
	}
	if len(docs) == 0 {
		var err error
		docs, err = r.table().
			Sample(ctx, r.Scanner, r.audit.Seed, sample, 1+sample/sampleYield, func(row shard.Row) bool {
				return r.ours(row.Doc, r.Collection) && row.Committed != ""
			})
		if err != nil {
			return err
		}
	}
	for part := range slices.Chunk(docs, page) {
		if err := r.named(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// sampleYield is how many rows of the collection a page of the table should contain. With a small
// number, a sample comes from many parts of the table.
const sampleYield = 20

// named compares documents whose keys are known.
func (r *run) named(ctx context.Context, docs []shard.DocID) error {
	found, err := r.Look(ctx, docs)
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.Row.Exists() {
			r.report.Rows++
		}
		if f.Copy != (shard.InSink{}) {
			r.report.Documents++
		}
		if err := r.deal(ctx, f); err != nil {
			return err
		}
	}
	r.reached(Place{})
	return r.pace(ctx, len(docs))
}

var errPast = errors.New("the collection has ended")

// Documents calls f for the documents of a collection in the sink whose id is greater than after,
// in the order of ids. With Whole it may also call f for documents that lull did not write.
func (l Looker) Documents(ctx context.Context, of shard.Collection, after string, f func(sink.Stored) error) error {
	if a, ok := l.Reader.(sink.Auditor); ok && l.Whole {
		return a.Range(ctx, of, after, f)
	}
	err := l.Reader.All(ctx, func(s sink.Stored) error {
		switch c := s.Doc.Collection(); {
		case c < of, c == of && after != "" && s.Doc.ID() <= after:
			return nil
		case c > of:
			return errPast // the documents are sorted
		}
		return f(s)
	})
	if errors.Is(err, errPast) {
		return nil
	}
	return err
}

func (r *run) reached(p Place) {
	if r.audit.Reached != nil {
		r.audit.Reached(p, r.report)
	}
}

// seen reports a page of the sink's documents.
func (r *run) seen(docs []shard.DocID, copies []stored) {
	if r.audit.Seen != nil {
		page := make([]Copy, len(docs))
		for i, d := range docs {
			page[i] = Copy{d, copies[i].InSink}
		}
		r.audit.Seen(page)
	}
	r.reached(Place{After: docs[len(docs)-1].ID()})
}
