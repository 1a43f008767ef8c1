package opensearch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// pageSize is how many documents All holds at a time.
const pageSize = 100

// All calls f for each document that lull wrote, by collection and id. It pages by id, so each
// document is seen once even if f is slow. It may or may not see documents that are written at the
// same time. OpenSearch must permit sorting by _id (indices.id_field_data.enabled). All refreshes
// first if it may.
func (s *Sink) All(ctx context.Context, f func(sink.Stored) error) error {
	indices, err := s.indices(ctx)
	if err != nil {
		return err
	}
	if err := s.refreshed(ctx, indices); err != nil {
		return err
	}
	for _, c := range slices.Compact(slices.Sorted(maps.Values(indices))) {
		if err := s.allOf(ctx, c, ours, "", f); err != nil {
			return err
		}
	}
	return nil
}

// hits is the answer to a search.
type hits struct {
	Hits struct {
		Hits []struct {
			Index  string            `json:"_index"`
			ID     string            `json:"_id"`
			Source json.RawMessage   `json:"_source"`
			Sort   []json.RawMessage `json:"sort"`
		} `json:"hits"`
	} `json:"hits"`
}

// searchIn searches in target, which is escaped.
func (s *Sink) searchIn(ctx context.Context, target string, body object) (hits, error) {
	var h hits
	err := s.client.Ask(ctx, http.MethodPost, "/"+target+"/_search?ignore_unavailable=true", body, &h)
	return h, err
}

// Range pages through one collection, lull's documents and others.
func (s *Sink) Range(ctx context.Context, c shard.Collection, after string, f func(sink.Stored) error) error {
	index, ok := s.names.Index(c)
	if !ok {
		return nil
	}
	if err := s.refreshed(ctx, map[string]shard.Collection{index: c}); err != nil {
		return err
	}
	return s.allOf(ctx, c, object{"match_all": object{}}, after, f)
}

// allOf pages through the documents of one collection that a query matches, after an id. If the
// query also matches documents that lull did not write, allOf returns them, too.
func (s *Sink) allOf(ctx context.Context, c shard.Collection, query object, after string,
	f func(sink.Stored) error,
) error {
	_, lulls := query["exists"]
	pages := s.ordered
	if s.Product == Elasticsearch {
		pages = s.collected
	}
	return pages(ctx, c, query, after, func(doc shard.DocID, source []byte) error {
		stored, ok, err := unseal(doc, source)
		switch {
		case err != nil && len(source) == 0: // the index keeps no bodies
			return fmt.Errorf("%s: %w", doc, err)
		case !lulls:
			stored, ok = opened(doc, source), true
		case err != nil: // somebody has written into it: the others count all the same
			stored, ok = sink.Stored{Doc: doc}, true
		}
		if !ok {
			return nil
		}
		return f(stored)
	})
}

// byID sorts by id. An index to which nothing was written may have no mapping, not even of _id, and
// the engine then fails a sort without unmapped_type.
var byID = []object{{"_id": object{"order": "asc", "unmapped_type": "keyword"}}}

// ordered is allOf by searches in the order of ids.
func (s *Sink) ordered(ctx context.Context, c shard.Collection, query object, after string,
	f func(shard.DocID, []byte) error,
) error {
	index, _ := s.names.Index(c)
	page := object{"size": pageSize, "sort": byID, "query": query, "track_total_hits": false}
	if after != "" {
		page["search_after"] = []string{after}
	}
	for {
		h, err := s.searchIn(ctx, pathOf(index), page)
		if err != nil {
			return fmt.Errorf("read all of %s: %w", c, err)
		}
		for _, hit := range h.Hits.Hits {
			if err := f(shard.DocID(string(c)+"#"+hit.ID), hit.Source); err != nil {
				return err
			}
		}
		if len(h.Hits.Hits) < pageSize {
			return nil
		}
		page["search_after"] = h.Hits.Hits[len(h.Hits.Hits)-1].Sort
	}
}

// Search finds documents that contain every word of the text, in one field or anywhere, best first.
// It sees what has been refreshed.
func (s *Sink) Search(ctx context.Context, q sink.Query) ([]sink.Stored, error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	if _, ok := s.names.Index(q.Collection); !ok && q.Collection != "" {
		return nil, nil
	}
	indices, err := s.indices(ctx)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(indices, func(_ string, c shard.Collection) bool { return q.Collection != "" && c != q.Collection })
	if len(indices) == 0 {
		return nil, nil
	}
	target := s.target(indices)
	fields := []string{q.Field}
	if q.Field == "" {
		if fields, err = s.fields(ctx, target); err != nil || len(fields) == 0 {
			return nil, err
		}
	}
	words := func(text, flags string) object {
		return object{"simple_query_string": object{
			"query": text, "fields": fields, "default_operator": "and", "flags": flags, "lenient": true,
		}}
	}
	whole, beginning := q.Parts()
	matches := words(whole, "WHITESPACE")
	if beginning != "" {
		// The word as it is goes along: an analyzer may have made stems of the words in the index.
		text, _ := sink.Query{Text: q.Text}.Parts()
		matches = object{"bool": object{"should": []object{
			words(text, "WHITESPACE"), words(strings.ReplaceAll(whole, "*", " ")+" "+beginning+"*", "WHITESPACE|PREFIX"),
		}}}
	}
	h, err := s.searchIn(ctx, target, object{
		"size": q.Limit, "query": object{"bool": object{"filter": ours, "must": matches}},
	})
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	var found []sink.Stored
	for _, hit := range h.Hits.Hits {
		c, ok := indices[hit.Index]
		if !ok {
			continue
		}
		stored, ok, err := unseal(shard.DocID(string(c)+"#"+hit.ID), hit.Source)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, stored)
		}
	}
	return found, nil
}

// Sample names a document of the collection, by a search. It sees what has been refreshed.
func (s *Sink) Sample(ctx context.Context, c shard.Collection) (shard.DocID, bool, error) {
	index, ok := s.names.Index(c)
	if !ok || !s.Versions {
		return "", false, nil
	}
	h, err := s.searchIn(ctx, pathOf(index), object{"size": 1, "query": ours, "_source": false, "track_total_hits": false})
	if err != nil {
		return "", false, fmt.Errorf("name a document of %s: %w", c, err)
	}
	if len(h.Hits.Hits) == 0 {
		return "", false, nil
	}
	return shard.DocID(string(c) + "#" + h.Hits.Hits[0].ID), true, nil
}

// fields are the searchable fields of documents: not OpenSearch's own, not lull's.
func (s *Sink) fields(ctx context.Context, target string) ([]string, error) {
	var caps struct {
		Fields map[string]map[string]struct {
			Searchable bool `json:"searchable"`
		} `json:"fields"`
	}
	path := "/" + target + "/_field_caps?fields=*&ignore_unavailable=true"
	if err := s.client.Ask(ctx, http.MethodGet, path, nil, &caps); err != nil {
		return nil, fmt.Errorf("list fields: %w", err)
	}
	var fields []string
	for name, types := range caps.Fields {
		for _, t := range types {
			if t.Searchable && !strings.HasPrefix(name, "_") {
				fields = append(fields, name)
				break
			}
		}
	}
	slices.Sort(fields)
	return fields, nil
}
