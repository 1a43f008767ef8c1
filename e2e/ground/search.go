// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/sink"
)

// Search is a client for OpenSearch that does not use lull.
type Search struct {
	url  string
	sign func(req *http.Request, body []byte) error // nil for a server without authentication
}

// Hit is a document in OpenSearch.
type Hit struct {
	Version int64          // the external version
	Meta    sink.Meta      // lull's own fields
	Fields  map[string]any // the fields of the document, without lull's own
}

// Must sends a request that has to succeed, and returns the answer.
func (s *Search) Must(t testing.TB, method, path string, body any) gjson.Result {
	t.Helper()
	answer, found := s.ask(t, method, path, body)
	if !found {
		t.Fatalf("OpenSearch %s %s: not found", method, path)
	}
	return answer
}

// ask sends one request. If OpenSearch answers "not found", found is false.
func (s *Search) ask(t testing.TB, method, path string, body any) (answer gjson.Result, found bool) {
	t.Helper()
	answer, found, err := s.send(context.WithoutCancel(t.Context()), method, path, body)
	Must(t, err)
	return answer, found
}

func (s *Search) send(ctx context.Context, method, path string, body any) (answer gjson.Result, found bool, err error) {
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return answer, false, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(text))
	if err != nil {
		return answer, false, err
	}
	req.Header.Set("Content-Type", "application/json")
	if s.sign != nil {
		if err := s.sign(req, text); err != nil {
			return answer, false, fmt.Errorf("OpenSearch %s %s: %w", method, path, err)
		}
	}
	status, _, text, err := exchange(req)
	if err != nil {
		return answer, false, fmt.Errorf("OpenSearch %s %s: %w", method, path, err)
	}
	if found = status != http.StatusNotFound; found && status/100 != 2 {
		return answer, false, fmt.Errorf("OpenSearch %s %s: %d %s", method, path, status, text)
	}
	return gjson.ParseBytes(text), found, nil
}

// Documents returns all documents of an index, by id. If the index does not exist, it returns none.
func (s *Search) Documents(t testing.TB, index string) map[string]Hit {
	t.Helper()
	all, err := s.Look(context.WithoutCancel(t.Context()), index)
	Must(t, err)
	return all
}

// Look is Documents, but returns an error. The map is nil if the index does not exist.
func (s *Search) Look(ctx context.Context, index string) (map[string]Hit, error) {
	if _, found, err := s.send(ctx, http.MethodPost, "/"+index+"/_refresh", nil); err != nil || !found {
		return nil, err
	}
	answer, _, err := s.send(ctx, http.MethodPost, "/"+index+"/_search",
		map[string]any{"size": 10_000, "version": true, "query": map[string]any{"match_all": map[string]any{}}})
	if err != nil {
		return nil, err
	}
	if failed := answer.Get("_shards.failed").Int(); failed > 0 || answer.Get("_shards.successful").Int() == 0 {
		return nil, fmt.Errorf("the search of %s in OpenSearch failed in %d shards", index, failed)
	}
	all := make(map[string]Hit)
	for _, h := range answer.Get("hits.hits").Array() {
		hit := Hit{Version: h.Get("_version").Int()}
		source := h.Get("_source")
		hit.Fields, _ = source.Value().(map[string]any)
		if err := json.Unmarshal([]byte(source.Get(sink.MetaField).Raw), &hit.Meta); err != nil {
			return nil, fmt.Errorf("read %s of document %s: %w", sink.MetaField, h.Get("_id"), err)
		}
		delete(hit.Fields, sink.MetaField)
		all[h.Get("_id").String()] = hit
	}
	return all, nil
}

// Writes returns how many writes and deletes an index has had since it was created, as OpenSearch
// counts them.
func (s *Search) Writes(t testing.TB, index string) int {
	t.Helper()
	answer, _ := s.ask(t, http.MethodGet, "/"+index+"/_stats/indexing", nil)
	counts := answer.Get("_all.primaries.indexing")
	return int(counts.Get("index_total").Int() + counts.Get("delete_total").Int())
}
