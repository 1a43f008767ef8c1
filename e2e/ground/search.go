package ground

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/sink"
)

// Search is OpenSearch, asked behind lull's back.
type Search struct {
	url, root string
}

// Hit is a document as OpenSearch holds it.
type Hit struct {
	Version int64          // the external version
	Meta    sink.Meta      // what lull wrote beside the document
	Fields  map[string]any // the document's own
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

// ask sends one request. It reports false where OpenSearch does not find what it is about.
func (s *Search) ask(t testing.TB, method, path string, body any) (answer gjson.Result, found bool) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if body == nil {
		text = nil
	}
	ctx := context.WithoutCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := caller.Do(req)
	if err != nil {
		t.Fatalf("OpenSearch %s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	text, err = io.ReadAll(res.Body)
	if found = res.StatusCode != http.StatusNotFound; err != nil || found && res.StatusCode/100 != 2 {
		t.Fatalf("OpenSearch %s %s: %d %s %v", method, path, res.StatusCode, text, err)
	}
	return gjson.ParseBytes(text), found
}

// Documents is everything that an index holds, by id; nothing where the index does not exist.
func (s *Search) Documents(t testing.TB, index string) map[string]Hit {
	t.Helper()
	if _, found := s.ask(t, http.MethodPost, "/"+index+"/_refresh", nil); !found {
		return nil
	}
	answer := s.Must(t, http.MethodPost, "/"+index+"/_search",
		map[string]any{"size": 10_000, "version": true, "query": map[string]any{"match_all": map[string]any{}}})
	all := make(map[string]Hit)
	for _, h := range answer.Get("hits.hits").Array() {
		hit := Hit{Version: h.Get("_version").Int()}
		source := h.Get("_source")
		hit.Fields, _ = source.Value().(map[string]any)
		if err := json.Unmarshal([]byte(source.Get(sink.MetaField).Raw), &hit.Meta); err != nil {
			t.Fatalf("read %s of document %s: %v", sink.MetaField, h.Get("_id"), err)
		}
		delete(hit.Fields, sink.MetaField)
		all[h.Get("_id").String()] = hit
	}
	return all
}

// Writes is how often an index was written to or deleted from since it was made: OpenSearch's own
// count.
func (s *Search) Writes(t testing.TB, index string) int {
	t.Helper()
	answer, _ := s.ask(t, http.MethodGet, "/"+index+"/_stats/indexing", nil)
	counts := answer.Get("_all.primaries.indexing")
	return int(counts.Get("index_total").Int() + counts.Get("delete_total").Int())
}
