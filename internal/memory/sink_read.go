package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/sink"
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

// All calls f on a snapshot.
func (s *Sink) All(ctx context.Context, f func(sink.Stored) error) error {
	for _, d := range s.snapshot("") {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("list documents: %w", err)
		}
		if err := f(d); err != nil {
			return err
		}
	}
	return nil
}

// snapshot is the documents of a collection, or of all, sorted. # sorts before every other character of a collection's name.
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

// Search looks for whole words in text values, without regard to case. A document with more of them comes first.
func (s *Sink) Search(ctx context.Context, q sink.Query) ([]sink.Stored, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	wanted := map[string]bool{}
	for _, w := range words(q.Text) {
		wanted[w] = true
	}
	type hit struct {
		sink.Stored
		score int
	}
	var hits []hit
	for _, d := range s.snapshot(q.Collection) {
		n, err := score(d.Document, q.Field, wanted)
		if err != nil {
			return nil, fmt.Errorf("search %s: %w", d.Doc, err)
		}
		if n > 0 {
			hits = append(hits, hit{d, n})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.score - a.score })
	if q.Limit > 0 && len(hits) > q.Limit {
		hits = hits[:q.Limit]
	}
	out := make([]sink.Stored, len(hits))
	for i := range hits {
		out[i] = hits[i].Stored
	}
	return out, nil
}

// score counts the wanted words in a document's field, or in all of it.
func score(document []byte, field string, wanted map[string]bool) (int, error) {
	var fields map[string]any
	if err := json.Unmarshal(document, &fields); err != nil {
		return 0, fmt.Errorf("read document: %w", err)
	}
	if field != "" {
		return count(fields[field], wanted), nil
	}
	return count(fields, wanted), nil
}

func count(value any, wanted map[string]bool) int {
	n := 0
	switch v := value.(type) {
	case string:
		for _, w := range words(v) {
			if wanted[w] {
				n++
			}
		}
	case []any:
		for _, e := range v {
			n += count(e, wanted)
		}
	case map[string]any:
		for _, e := range v {
			n += count(e, wanted)
		}
	}
	return n
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
