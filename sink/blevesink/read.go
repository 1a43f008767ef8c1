package blevesink

import (
	"context"
	"fmt"
	"strconv"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search/query"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// view calls f with one unchanging state of the index.
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

// reading is view for the methods of sink.Reader: it keeps Close waiting.
func (x *Index) reading(f func(index.IndexReader) error) error {
	if !x.begin() {
		return fmt.Errorf("index in %s is closed", x.dir)
	}
	defer x.writing.Done()
	return x.view(f)
}

// Get returns the document, or false.
func (x *Index) Get(_ context.Context, doc shard.DocID) (s sink.Stored, found bool, err error) {
	err = x.reading(func(r index.IndexReader) error {
		rec, ok, err := load(r, doc)
		if err == nil && ok && rec.source != nil {
			s, found = rec.meta.Stored(doc, rec.source), true
		}
		return err
	})
	return s, found, err
}

// All calls f for each document as of now, sorted by collection and id. It holds one document at a
// time: Bleve's own dictionary of ids is sorted, and "#" is less than every character of a
// collection's name.
func (x *Index) All(ctx context.Context, f func(sink.Stored) error) error {
	return x.reading(func(r index.IndexReader) error {
		ids, err := r.FieldDict("_id")
		if err != nil {
			return fmt.Errorf("read ids: %w", err)
		}
		defer ids.Close()
		for {
			entry, err := ids.Next()
			if err != nil {
				return fmt.Errorf("read ids: %w", err)
			}
			if entry == nil {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			doc := shard.DocID(entry.Term)
			rec, ok, err := load(r, doc)
			if err != nil {
				return err
			}
			if !ok || rec.source == nil {
				continue
			}
			if err := f(rec.meta.Stored(doc, rec.source)); err != nil {
				return err
			}
		}
	})
}

// microsPerMinute turns a fence, which is a time, into minutes: there are few of those, and each is
// a term.
const microsPerMinute = 60_000_000

func minuteTerm(f shard.Fence) []byte { return fmt.Appendf(nil, "%016x", max(0, f)/microsPerMinute) }

// Newest returns a fence that no fence in the index exceeds, a minute above the greatest at most; 0
// for an empty index. A clock that ran ahead (lull dev --speed) must go on from there the next
// time, or everything would be refused as older than what is there.
func (x *Index) Newest() (newest shard.Fence, err error) {
	err = x.reading(func(r index.IndexReader) error {
		minutes, err := r.FieldDict(fieldMinute)
		if err != nil {
			return fmt.Errorf("read fences: %w", err)
		}
		defer minutes.Close()
		for {
			entry, err := minutes.Next()
			if err != nil {
				return fmt.Errorf("read fences: %w", err)
			}
			if entry == nil {
				return nil
			}
			minute, err := strconv.ParseInt(entry.Term, 16, 64)
			if err != nil {
				return fmt.Errorf("read fences: %w", err)
			}
			newest = shard.Fence(minute)*microsPerMinute + microsPerMinute - 1
		}
	})
	return newest, err
}

// Search finds the documents that contain every word of the text, in one field or anywhere, best
// first.
func (x *Index) Search(ctx context.Context, q sink.Query) ([]sink.Stored, error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	match := query.NewMatchQuery(q.Text)
	match.SetOperator(query.MatchQueryOperatorAnd)
	match.SetField(fieldAll)
	if q.Field != "" {
		match.SetField(prefixOwn + q.Field)
	}
	var matches query.Query = match
	if q.Collection != "" {
		in := query.NewTermQuery(string(q.Collection))
		in.SetField(fieldCollection)
		in.SetBoost(0) // a filter: it says nothing of how well a document matches
		matches = query.NewConjunctionQuery([]query.Query{match, in})
	}
	var found []sink.Stored
	err := x.reading(func(r index.IndexReader) error {
		hits, err := x.bleve.SearchInContext(ctx, bleve.NewSearchRequestOptions(matches, q.Limit, 0, false))
		if err != nil {
			return fmt.Errorf("search index: %w", err)
		}
		for _, hit := range hits.Hits {
			rec, ok, err := load(r, shard.DocID(hit.ID))
			if err != nil {
				return err
			}
			// r may be a moment older than what the search saw.
			if ok && rec.source != nil {
				found = append(found, rec.meta.Stored(shard.DocID(hit.ID), rec.source))
			}
		}
		return nil
	})
	return found, err
}
