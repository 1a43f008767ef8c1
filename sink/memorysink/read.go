// SPDX-License-Identifier: Apache-2.0

package memorysink

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Get returns the document.
func (s *Sink) Get(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error) {
	if err := ctx.Err(); err != nil {
		return sink.Stored{}, false, fmt.Errorf("get document: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.docs[doc]
	if !ok || d.deleted {
		return sink.Stored{}, false, nil
	}
	return copyOf(d.Stored), true, nil
}

// Marks returns the metadata that lull wrote with the documents, without the documents.
func (s *Sink) Marks(ctx context.Context, docs []shard.DocID) ([]sink.Stored, error) {
	out, err := s.Documents(ctx, docs)
	for i := range out {
		out[i].Document = nil
	}
	return out, err
}

// Found is Get without the document: a search finds each write at once.
func (s *Sink) Found(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error) {
	d, ok, err := s.Get(ctx, doc)
	d.Document = nil
	return d, ok, err
}

// Range calls f on a snapshot of a collection.
func (s *Sink) Range(ctx context.Context, c shard.Collection, after string, f func(sink.Stored) error) error {
	for _, d := range s.snapshot(c) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("list documents: %w", err)
		}
		if d.Doc.ID() <= after {
			continue
		}
		if err := f(d); err != nil {
			return err
		}
	}
	return nil
}

// Documents returns documents with their content.
func (s *Sink) Documents(ctx context.Context, docs []shard.DocID) ([]sink.Stored, error) {
	out := make([]sink.Stored, len(docs))
	for i, doc := range docs {
		var err error
		if out[i], _, err = s.Get(ctx, doc); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// All calls f on a snapshot of every collection.
func (s *Sink) All(ctx context.Context, f func(sink.Stored) error) error {
	return s.Range(ctx, "", "", f)
}

// snapshot returns copies of the documents of a collection, sorted by id. An empty c means all
// collections.
func (s *Sink) snapshot(c shard.Collection) []sink.Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	docs := make([]sink.Stored, 0, len(s.docs))
	for id, d := range s.docs {
		if !d.deleted && (c == "" || id.Collection() == c) {
			docs = append(docs, copyOf(d.Stored))
		}
	}
	slices.SortFunc(docs, func(a, b sink.Stored) int { return cmp.Compare(a.Doc, b.Doc) })
	return docs
}

func copyOf(d sink.Stored) sink.Stored {
	d.Document = bytes.Clone(d.Document)
	return d
}

// Search looks for words in texts and numbers, and ignores upper and lower case. A document in
// which the words occur more often comes first.
func (s *Sink) Search(ctx context.Context, q sink.Query) ([]sink.Stored, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	whole, beginning := q.Parts()
	wanted := words(whole)
	var found []sink.Stored
	scores := map[shard.DocID]int{}
	for _, d := range s.snapshot(q.Collection) {
		value := gjson.ParseBytes(d.Document)
		if q.Field != "" {
			value = value.Get(q.Field)
		}
		if scores[d.Doc] = score(value, wanted, strings.ToLower(beginning)); scores[d.Doc] > 0 {
			found = append(found, d)
		}
	}
	slices.SortStableFunc(found, func(a, b sink.Stored) int { return scores[b.Doc] - scores[a.Doc] })
	return found[:min(len(found), max(q.Limit, 0))], nil
}

// score counts how often the wanted words occur in a value. The function also counts the words that
// begin with beginning. The score is 0 if one of the wanted words, or beginning, does not occur.
func score(value gjson.Result, wanted []string, beginning string) int {
	found := map[string]int{}
	count(value, found)
	n := 0
	for _, w := range wanted {
		if found[w] == 0 {
			return 0
		}
		n += found[w]
	}
	if beginning == "" {
		return n
	}
	begin := 0
	for w, times := range found {
		if strings.HasPrefix(w, beginning) {
			begin += times
		}
	}
	if begin == 0 {
		return 0
	}
	return n + begin
}

// count increments found for each word of a value.
func count(v gjson.Result, found map[string]int) {
	switch {
	case v.Type == gjson.String:
		for _, w := range words(v.Str) {
			found[w]++
		}
	case v.Type == gjson.Number:
		found[v.Raw]++
	case v.IsObject(), v.IsArray():
		v.ForEach(func(_, e gjson.Result) bool {
			count(e, found)
			return true
		})
	}
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
