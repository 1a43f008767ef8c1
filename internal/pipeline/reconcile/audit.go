package reconcile

import (
	"context"
	"errors"
	"slices"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Audit makes a comparison one of a long verification: it can go on where it stopped, tells how far
// it is, and looks at what lull did not write.
type Audit struct {
	Keys    []shard.DocID       // these only, whatever the rest says
	Sample  int                 // so many committed rows at random instead of all documents; 0 for all
	Seed    string              // random, for Sample
	From    Place               // where an earlier one stopped
	Reached func(Place, Report) // called after each page; may be nil
	Seen    func([]Copy)        // called with all that the sink holds, a page at a time; may be nil
}

// Place is how far a comparison is. The zero Place is the beginning.
type Place struct {
	Rows  bool   `json:"rows,omitempty"`  // the documents of the sink are done
	After string `json:"after,omitempty"` // the last document's id, or the table's cursor
}

// Copy is a document in the sink: the zero InSink where its mark cannot be read.
type Copy struct {
	Doc shard.DocID
	shard.InSink
}

// both compares from both sides, or what the audit asks for.
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

// sampleYield is how many rows of the collection a page of the table is hoped to hold. A small
// number has a sample come from many parts of it.
const sampleYield = 20

// named looks at documents whose keys are known.
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
// by id. With Whole it may also call it for what lull did not write.
func (l Looker) Documents(ctx context.Context, of shard.Collection, after string, f func(sink.Stored) error) error {
	if a, ok := l.Reader.(sink.Auditor); ok && l.Whole {
		return a.Range(ctx, of, after, f)
	}
	err := l.Reader.All(ctx, func(s sink.Stored) error {
		switch c := s.Doc.Collection(); {
		case c < of, c == of && after != "" && s.Doc.ID() <= after:
			return nil
		case c > of:
			return errPast // they come sorted
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

// seen tells of a page of the sink.
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
