package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

const (
	// walkSize is how many ids a page of Walk has. walkAlive is how long the engine keeps the
	// scroll between two pages.
	walkSize  = 1000
	walkAlive = "10m"
	// transferSize is how many documents Transfer reads at a time.
	transferSize = 100
)

// Walk calls f with the ids and versions of all documents of an index.
func (s *Sink) Walk(ctx context.Context, index string, f func([]sink.Versioned) error) error {
	if err := s.slow(ctx, http.MethodPost, "/"+pathOf(index)+"/_refresh", nil, nil); err != nil {
		return fmt.Errorf("refresh %s: %w", index, err)
	}
	if err := s.scroll(ctx, index, object{"match_all": object{}}, f); err != nil {
		return fmt.Errorf("read the ids of %s: %w", index, err)
	}
	return nil
}

// scroll calls f with the ids and versions of the documents that a query matches. The ids come in
// no particular order.
func (s *Sink) scroll(ctx context.Context, index string, query object, f func([]sink.Versioned) error) error {
	type page struct {
		Scroll string `json:"_scroll_id"`
		Hits   struct {
			Hits []struct {
				ID      string `json:"_id"`
				Version int64  `json:"_version"`
			} `json:"hits"`
		} `json:"hits"`
		Shards struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
	}
	var p page
	err := s.slow(ctx, http.MethodPost, "/"+pathOf(index)+"/_search?ignore_unavailable=true&scroll="+walkAlive, object{
		"size": walkSize, "query": query, "sort": []string{"_doc"}, "version": true, "_source": false,
	}, &p)
	defer func() {
		if p.Scroll != "" {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchange.DialTimeout)
			defer cancel()
			// If this fails, the scroll expires.
			_ = s.client.Ask(ctx, http.MethodDelete, "/_search/scroll", object{"scroll_id": p.Scroll}, nil)
		}
	}()
	for {
		if err == nil && p.Shards.Failed > 0 {
			err = fmt.Errorf("%d shards gave no answer", p.Shards.Failed)
		}
		if err != nil {
			return err
		}
		if len(p.Hits.Hits) == 0 {
			return nil
		}
		docs := make([]sink.Versioned, len(p.Hits.Hits))
		for i, h := range p.Hits.Hits {
			docs[i] = sink.Versioned{ID: h.ID, Version: h.Version}
		}
		if err := f(docs); err != nil {
			return err
		}
		next := page{}
		err = s.slow(ctx, http.MethodPost, "/_search/scroll", object{"scroll": walkAlive, "scroll_id": p.Scroll}, &next)
		if next.Scroll == "" {
			next.Scroll = p.Scroll
		}
		p = next
	}
}

// get reads the current documents of one index.
func (s *Sink) get(ctx context.Context, index string, ids []string, source bool) ([]copied, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	asked := make([]object, len(ids))
	for i, id := range ids {
		asked[i] = object{"_index": index, "_id": id}
	}
	ctx, cancel := context.WithTimeout(ctx, slowCall)
	defer cancel()
	docs, err := s.mget(ctx, asked, source)
	for i, d := range docs {
		switch {
		case d.Error != nil:
			err = errors.New(d.Error.reason())
		case d.ID != ids[i]:
			err = s.client.Odd()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read documents of %s: %w", index, err)
	}
	return docs, nil
}

// VersionsOf reads the current versions of documents, even before the next refresh.
func (s *Sink) VersionsOf(ctx context.Context, index string, ids []string) ([]int64, error) {
	docs, err := s.get(ctx, index, ids, false)
	if err != nil {
		return nil, err
	}
	out := make([]int64, len(ids))
	for i, d := range docs {
		if out[i] = d.Version; !d.Found {
			out[i] = -1
		}
	}
	return out, nil
}

// Transfer copies documents and their versions to another index.
func (s *Sink) Transfer(ctx context.Context, c shard.Collection, from, into string, ids []string) ([]sink.Outcome,
	error,
) {
	b, to := exchange.Batch{Outcomes: slices.Repeat([]sink.Outcome{exchange.Late}, len(ids))}, s.into(c, into)
	at := 0
	for part := range slices.Chunk(ids, transferSize) {
		docs, err := s.get(ctx, from, part, true)
		if err != nil {
			return nil, err
		}
		var entries []exchange.Entry
		for i, d := range docs {
			if !d.Found {
				b.Outcomes[at+i] = sink.Outcome{Kind: sink.Applied}
				continue
			}
			if len(d.Source) == 0 {
				return nil, fmt.Errorf("%s does not keep the bodies of documents: fill it from the source", from)
			}
			e := exchange.Entry{Op: versioned(c, shard.Put, d.ID, d.Version), Index: to.Index, Position: at + i}
			text := bytes.NewBuffer(actionLine(e.Op, e.Index, &e.Fence))
			if err := json.Compact(text, d.Source); err != nil { // the source may be on several lines, and a bulk request needs one line
				return nil, s.client.Odd()
			}
			e.Text = append(text.Bytes(), '\n')
			entries = append(entries, e)
		}
		call, cancel := context.WithTimeout(ctx, slowCall)
		to.push(call, &b, entries, nil)
		cancel()
		at += len(part)
	}
	return b.Outcomes, nil
}

// Erase deletes documents, with the given versions as external versions.
func (s *Sink) Erase(ctx context.Context, c shard.Collection, index string, docs []sink.Versioned) []sink.Outcome {
	ops := make([]sink.Op, len(docs))
	for i, d := range docs {
		ops[i] = versioned(c, shard.Delete, d.ID, d.Version)
	}
	ctx, cancel := context.WithTimeout(ctx, slowCall)
	defer cancel()
	return s.into(c, index).Write(ctx, ops)
}

// versioned returns an op on a document, with a version of an index as the fence.
func versioned(c shard.Collection, kind shard.Operation, id string, version int64) sink.Op {
	return sink.Op{Doc: shard.DocID(string(c) + "#" + id), Kind: kind, Fence: shard.Fence(version)}
}
