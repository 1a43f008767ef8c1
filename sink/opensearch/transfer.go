// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"bytes"
	"cmp"
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
	walkSize  = 500
	walkAlive = "10m"
	// transferSize is how many documents Transfer reads at a time.
	transferSize = 100
)

// Walk reads the next page of ids and versions. A place is the id of a scroll. The engine moves the
// scroll on with each page, so a page can be read only once.
func (s *Sink) Walk(ctx context.Context, index, place string) ([]sink.Versioned, string, error) {
	if place == "" {
		if err := s.slow(ctx, http.MethodPost, "/"+pathOf(index)+"/_refresh", nil, nil); err != nil {
			return nil, "", fmt.Errorf("refresh %s: %w", index, err)
		}
	}
	docs, next, err := s.page(ctx, index, object{"match_all": object{}}, place)
	if err != nil {
		return nil, "", fmt.Errorf("read the ids of %s: %w", index, err)
	}
	return docs, next, nil
}

// scroll calls f with the ids and versions of the documents that a query matches. The ids come in
// no particular order.
func (s *Sink) scroll(ctx context.Context, index string, query object, f func([]sink.Versioned) error) error {
	for place := ""; ; {
		docs, next, err := s.page(ctx, index, query, place)
		if err == nil && len(docs) > 0 {
			err = f(docs)
		}
		if err != nil {
			s.endScroll(ctx, cmp.Or(next, place))
			return err
		}
		if place = next; place == "" {
			return nil
		}
	}
}

// page reads the next page of a scroll. An empty place opens one, and an empty next is the end.
func (s *Sink) page(ctx context.Context, index string, query object, place string) (docs []sink.Versioned, next string,
	err error,
) {
	var p struct {
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
	if place == "" {
		err = s.slow(ctx, http.MethodPost, "/"+pathOf(index)+"/_search?ignore_unavailable=true&scroll="+walkAlive, object{
			"size": walkSize, "query": query, "sort": []string{"_doc"}, "version": true, "_source": false,
		}, &p)
	} else {
		err = s.slow(ctx, http.MethodPost, "/_search/scroll", object{"scroll": walkAlive, "scroll_id": place}, &p)
	}
	if err == nil && p.Shards.Failed > 0 {
		err = fmt.Errorf("%d shards gave no answer", p.Shards.Failed)
	}
	if next = cmp.Or(p.Scroll, place); err != nil {
		return nil, next, err
	}
	for _, h := range p.Hits.Hits {
		docs = append(docs, sink.Versioned{ID: h.ID, Version: h.Version})
	}
	if len(docs) == 0 {
		s.endScroll(ctx, next)
		next = ""
	}
	return docs, next, nil
}

// endScroll frees what the engine keeps for a scroll. If it fails, the scroll expires.
func (s *Sink) endScroll(ctx context.Context, place string) {
	if place == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchange.DialTimeout)
	defer cancel()
	_ = s.client.Ask(ctx, http.MethodDelete, "/_search/scroll", object{"scroll_id": place}, nil)
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
			// the source may be on several lines, and a bulk request needs one line
			if err := json.Compact(text, d.Source); err != nil {
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
