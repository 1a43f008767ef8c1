// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"slices"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// sample compares random rows with the sink.
func (r *run) sample(ctx context.Context) error {
	docs, err := r.table().
		Sample(ctx, r.Scanner, r.Seed, r.Sample, 1+r.Sample/sampleYield, func(row shard.Row) bool {
			return r.ours(row.Doc, r.Collection) && row.Committed != ""
		})
	if err != nil {
		return err
	}
	return r.named(ctx, docs)
}

// sampleYield is the number of rows of the collection that a page of the table should contain. With
// a small number, a sample comes from many parts of the table.
const sampleYield = 20

// named compares documents whose keys are given.
func (r *run) named(ctx context.Context, docs []shard.DocID) error {
	for part := range slices.Chunk(docs, together) {
		found, err := r.Look(ctx, part)
		if err != nil {
			return err
		}
		for _, f := range found {
			if f.Row.Exists() {
				r.page.Rows++
			}
			switch {
			case f.Copy != (shard.InSink{}):
				r.page.Documents++
				r.page.Seen = append(r.page.Seen, Copy{f.Row.Doc, f.Copy})
			case f.Row.Exists():
				r.page.Absent = append(r.page.Absent, f.Row.Doc)
			}
			if err := r.deal(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

var errPast = errors.New("the collection has ended")

// Documents calls f for the documents of a collection in the sink whose id is greater than after,
// in the order of their ids. With Whole it may also call f for documents that lull did not write.
// It leaves out documents of other parts: the stacks of those parts have their rows.
func (l Looker) Documents(ctx context.Context, of shard.Collection, after string, each func(sink.Stored) error) error {
	f := func(s sink.Stored) error {
		if !l.Config.Ours(s.Doc) {
			return nil
		}
		return each(s)
	}
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
