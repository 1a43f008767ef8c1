package ground

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

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

// Ask sends one request and returns the answer's status and body.
func (s *Search) Ask(ctx context.Context, method, path string, body any) (int, []byte, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, content)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// Must sends a request that has to succeed.
func (s *Search) Must(t testing.TB, method, path string, body any) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	status, answer, err := s.Ask(ctx, method, path, body)
	if err != nil || status/100 != 2 {
		t.Fatalf("OpenSearch %s %s: %d %s %v", method, path, status, answer, err)
	}
	return answer
}

// Documents is everything that an index holds, by id; none where there is no index.
func (s *Search) Documents(t testing.TB, index string) map[string]Hit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if status, _, err := s.Ask(ctx, http.MethodHead, "/"+index, nil); err == nil && status == http.StatusNotFound {
		return nil
	}
	s.Must(t, http.MethodPost, "/"+index+"/_refresh", nil)
	var answer struct {
		Hits struct {
			Hits []struct {
				ID      string         `json:"_id"`
				Version int64          `json:"_version"`
				Source  map[string]any `json:"_source"`
			}
		}
	}
	text := s.Must(t, http.MethodPost, "/"+index+"/_search",
		map[string]any{"size": 10_000, "version": true, "query": map[string]any{"match_all": map[string]any{}}})
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("read OpenSearch's answer: %v", err)
	}
	all := make(map[string]Hit)
	for _, h := range answer.Hits.Hits {
		meta, err := json.Marshal(h.Source[sink.MetaField])
		hit := Hit{Version: h.Version, Fields: h.Source}
		if err == nil {
			err = json.Unmarshal(meta, &hit.Meta)
		}
		if err != nil {
			t.Fatalf("read %s of document %s: %v", sink.MetaField, h.ID, err)
		}
		delete(hit.Fields, sink.MetaField)
		all[h.ID] = hit
	}
	return all
}

// Writes is how often an index was written to or deleted from since it was made: OpenSearch's own
// count.
func (s *Search) Writes(t testing.TB, index string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status, text, err := s.Ask(ctx, http.MethodGet, "/"+index+"/_stats/indexing", nil)
	if err == nil && status == http.StatusNotFound {
		return 0
	}
	var answer struct {
		All struct {
			Primaries struct {
				Indexing struct {
					Index  int `json:"index_total"`
					Delete int `json:"delete_total"`
				}
			}
		} `json:"_all"`
	}
	if err := errors.Join(err, json.Unmarshal(text, &answer)); err != nil || status != http.StatusOK {
		t.Fatalf("count writes of %s: status %d, %v", index, status, err)
	}
	return answer.All.Primaries.Indexing.Index + answer.All.Primaries.Indexing.Delete
}
