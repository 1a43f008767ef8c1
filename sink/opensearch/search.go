// SPDX-License-Identifier: Apache-2.0

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

// pageSize is how many documents All keeps in memory at a time.
const pageSize = 100

// All calls f for each document that lull wrote, sorted by collection and id. All reads pages by
// id, so f gets each document once even if f is slow. All may miss documents that are written in
// the meantime. OpenSearch must permit sorting by _id (indices.id_field_data.enabled). All
// refreshes the indices first, if it has the permission.
func (s *Sink) All(ctx context.Context, f func(sink.Stored) error) error {
	indices, err := s.indices(ctx)
	if err != nil {
		return err
	}
	if err := s.refreshed(ctx, indices); err != nil {
		return err
	}
	for _, c := range slices.Compact(slices.Sorted(maps.Values(indices))) {
		if err := s.allOf(ctx, c, writtenByLull, "", f); err != nil {
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

// searchIn searches in the indices of target, whose names are already escaped.
func (s *Sink) searchIn(ctx context.Context, target string, body object) (hits, error) {
	var h hits
	err := s.client.Ask(ctx, http.MethodPost, "/"+target+"/_search?ignore_unavailable=true", body, &h)
	return h, err
}

// Range calls f for each document of one collection, even if lull did not write the document.
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

// allOf pages through the documents of one collection that a query matches, from the first id after
// the given one. If the query matches documents that lull did not write, allOf returns those, too.
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
		case err != nil && len(source) == 0: // the index does not store bodies
			return fmt.Errorf("%s: %w", doc, err)
		case !lulls:
			stored, ok = opened(doc, source), true
		case err != nil: // another program changed this document; continue with the other documents
			stored, ok = sink.Stored{Doc: doc}, true
		}
		if !ok {
			return nil
		}
		return f(stored)
	})
}

// byID sorts by id. An empty index may have no mapping, not even of _id. Without unmapped_type,
// sorting such an index fails.
var byID = []object{{"_id": object{"order": "asc", "unmapped_type": "keyword"}}}

// ordered pages through documents like allOf, for an engine that sorts by id.
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

// Search finds documents that contain every word of the text, in one field or in any field, best
// first. Search does not see documents before the next refresh.
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
		// Also search for the last word as a whole word, because an analyzer may have reduced the
		// words in the index to stems.
		text, _ := sink.Query{Text: q.Text}.Parts()
		matches = object{"bool": object{"should": []object{
			words(text, "WHITESPACE"), words(strings.ReplaceAll(whole, "*", " ")+" "+beginning+"*", "WHITESPACE|PREFIX"),
		}}}
	}
	h, err := s.searchIn(ctx, target, object{
		"size": q.Limit, "query": object{"bool": object{"filter": writtenByLull, "must": matches}},
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

// Sample searches for a document of the collection and returns its id. Sample does not see
// documents before the next refresh.
func (s *Sink) Sample(ctx context.Context, c shard.Collection) (shard.DocID, bool, error) {
	index, ok := s.names.Index(c)
	if !ok || !s.Versions {
		return "", false, nil
	}
	h, err := s.searchIn(ctx, pathOf(index), object{"size": 1, "query": writtenByLull, "_source": false, "track_total_hits": false})
	if err != nil {
		return "", false, fmt.Errorf("name a document of %s: %w", c, err)
	}
	if len(h.Hits.Hits) == 0 {
		return "", false, nil
	}
	return shard.DocID(string(c) + "#" + h.Hits.Hits[0].ID), true, nil
}

// fields returns the names of the searchable fields, without the fields of OpenSearch and of lull.
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
