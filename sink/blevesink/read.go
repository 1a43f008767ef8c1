// SPDX-License-Identifier: Apache-2.0

package blevesink

import (
	"context"
	"fmt"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search/query"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// view calls f with a snapshot of the index.
func (x *Index) view(f func(index.IndexReader) error) (err error) {
	internal, err := x.bleve.Advanced()
	if err != nil {
		return fmt.Errorf("read index: %w", err)
	}
	r, err := internal.Reader()
	if err != nil {
		return fmt.Errorf("read index: %w", err)
	}
	defer func() {
		if closing := r.Close(); err == nil && closing != nil {
			err = fmt.Errorf("read index: %w", closing)
		}
	}()
	return f(r)
}

// viewOpen does what view does, for the methods of sink.Reader. Close waits until viewOpen returns.
func (x *Index) viewOpen(f func(index.IndexReader) error) error {
	if !x.begin() {
		return fmt.Errorf("index in %s is closed", x.dir)
	}
	defer x.writing.Done()
	return x.view(f)
}

// Get returns the document, or false.
func (x *Index) Get(_ context.Context, doc shard.DocID) (s sink.Stored, found bool, err error) {
	err = x.viewOpen(func(r index.IndexReader) error {
		s, found, err = stored(r, doc)
		return err
	})
	return s, found, err
}

// Found is Get without the document: a search finds each write at once.
func (x *Index) Found(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error) {
	s, found, err := x.Get(ctx, doc)
	s.Document = nil
	return s, found, err
}

// stored reads a document. The function returns false if the index has no document with this id, or
// only a tombstone.
func stored(r index.IndexReader, doc shard.DocID) (sink.Stored, bool, error) {
	rec, ok, err := load(r, doc)
	if err != nil || !ok || rec.source == nil {
		return sink.Stored{}, false, err
	}
	return rec.meta.Stored(doc, rec.source), true, nil
}

// terms calls f for each term of a field in sorted order, until f returns an error. The terms begin
// with first and end before end. A nil first or end means no bound.
func terms(r index.IndexReader, field string, first, end []byte, f func(term string) error) error {
	all, err := r.FieldDictRange(field, first, end)
	if err != nil {
		return fmt.Errorf("read the terms of %s: %w", field, err)
	}
	defer all.Close()
	for {
		entry, err := all.Next()
		if err != nil {
			return fmt.Errorf("read the terms of %s: %w", field, err)
		}
		if entry == nil {
			return nil
		}
		if err := f(entry.Term); err != nil {
			return err
		}
	}
}

// each calls f for each document in a snapshot of the index, sorted by collection and id. The ids
// begin with first and end before end. each needs memory for one document only, because Bleve's own
// dictionary of ids is sorted. "#" sorts before every character of a collection's name.
func (x *Index) each(ctx context.Context, first, end []byte, f func(sink.Stored) error) error {
	return x.viewOpen(func(r index.IndexReader) error {
		return terms(r, "_id", first, end, func(id string) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			s, ok, err := stored(r, shard.DocID(id))
			if err != nil || !ok {
				return err
			}
			return f(s)
		})
	})
}

// All calls f for each document in a snapshot of the index, sorted by collection and id.
func (x *Index) All(ctx context.Context, f func(sink.Stored) error) error {
	return x.each(ctx, nil, nil, f)
}

// Range calls f for each document of a collection in a snapshot of the index. Range begins after
// the given id.
func (x *Index) Range(ctx context.Context, c shard.Collection, after string, f func(sink.Stored) error) error {
	next := string(c) + "#" + after + "\x00" // the smallest key that is greater than the key of the id after
	return x.each(ctx, []byte(next), []byte(c+"$"), f)
}

// Documents returns documents with their content.
func (x *Index) Documents(ctx context.Context, docs []shard.DocID) ([]sink.Stored, error) {
	out := make([]sink.Stored, len(docs))
	err := x.viewOpen(func(r index.IndexReader) (err error) {
		for i := 0; i < len(docs) && err == nil; i++ {
			if err = ctx.Err(); err == nil {
				out[i], _, err = stored(r, docs[i])
			}
		}
		return err
	})
	return out, err
}

// microsPerMinute converts a fence, which is a time in microseconds, into minutes. The index then
// has few terms for fences: one a minute.
const microsPerMinute = 60_000_000

func minuteTerm(f shard.Fence) []byte { return fmt.Appendf(nil, "%016x", max(0, f)/microsPerMinute) }

// Newest returns the greatest fence in the index, or 0 for an empty index. The clock of `lull dev
// --speed` runs ahead of real time, so the next run must begin at this fence. Otherwise the sink
// would refuse every write as older.
func (x *Index) Newest() (newest shard.Fence, err error) {
	err = x.viewOpen(func(r index.IndexReader) error {
		var minutes []string
		err := terms(r, fieldMinute, nil, nil, func(term string) error {
			minutes = append(minutes, term)
			return nil
		})
		// A term stays in the index for some time after its last document was replaced or removed.
		for i := len(minutes) - 1; i >= 0 && newest == 0 && err == nil; i-- {
			newest, err = newestOf(r, minutes[i])
		}
		return err
	})
	return newest, err
}

// newestOf returns the greatest fence of a minute, or 0 if no document has a fence of that minute.
func newestOf(r index.IndexReader, minute string) (newest shard.Fence, err error) {
	all, err := r.TermFieldReader(context.Background(), []byte(minute), fieldMinute, false, false, false)
	if err != nil {
		return 0, fmt.Errorf("read fences: %w", err)
	}
	defer func() { _ = all.Close() }()
	for {
		d, err := all.Next(nil)
		if err != nil || d == nil {
			return newest, err
		}
		id, err := r.ExternalID(d.ID)
		if err != nil {
			return 0, fmt.Errorf("read fences: %w", err)
		}
		rec, _, err := load(r, shard.DocID(id))
		if err != nil {
			return 0, err
		}
		newest = max(newest, rec.meta.Fence)
	}
}

// match returns a query for documents that contain every word of the text, as whole words.
func match(text, field string) query.Query {
	m := query.NewMatchQuery(text)
	m.SetOperator(query.MatchQueryOperatorAnd)
	m.SetField(field)
	return m
}

// Search finds the documents that contain every word of the text, in one field or anywhere, best
// first.
func (x *Index) Search(ctx context.Context, q sink.Query) ([]sink.Stored, error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	field := fieldAll
	if q.Field != "" {
		field = prefixOwn + q.Field
	}
	matches := match(q.Text, field)
	if whole, beginning := q.Parts(); beginning != "" {
		begins := query.NewPrefixQuery(strings.ToLower(beginning))
		begins.SetField(field)
		var wanted query.Query = begins
		if whole != "" {
			wanted = query.NewConjunctionQuery([]query.Query{match(whole, field), begins})
		}
		// The query also matches the last word as a whole word. The index holds stems, and a stem
		// may be shorter than the typed beginning.
		matches = query.NewDisjunctionQuery([]query.Query{matches, wanted})
	}
	if q.Collection != "" {
		in := query.NewTermQuery(string(q.Collection))
		in.SetField(fieldCollection)
		in.SetBoost(0) // a filter: it must not change how well a document matches
		matches = query.NewConjunctionQuery([]query.Query{matches, in})
	}
	var found []sink.Stored
	err := x.viewOpen(func(r index.IndexReader) error {
		hits, err := x.bleve.SearchInContext(ctx, bleve.NewSearchRequestOptions(matches, q.Limit, 0, false))
		if err != nil {
			return fmt.Errorf("search index: %w", err)
		}
		for _, hit := range hits.Hits {
			s, ok, err := stored(r, shard.DocID(hit.ID))
			if err != nil {
				return err
			}
			if ok { // a hit may be missing, because r is slightly older than the snapshot of the search
				found = append(found, s)
			}
		}
		return nil
	})
	return found, err
}
