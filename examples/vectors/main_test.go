// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/pipeline/enrich/httpcall"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"))
}

// lull's own client calls the stub, and merges the fields of its answer.
func TestTheStubKeepsTheContract(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(enrichHandler))
	defer s.Close()
	c := httpcall.New(s.URL, []string{"127.0.0.1"}, nil)
	docs := []enrich.Document{
		{
			ID:     "a",
			Inputs: json.RawMessage(`{"/title":"Vienna"}`),
		}, {ID: "b", Inputs: json.RawMessage(`{"/title":"..."}`)},
	}
	a, failure := enrich.Ask(context.Background(), c, docs)
	if failure != nil || a.Outcomes[0].Kind != enrich.Enriched || a.Outcomes[1].Kind != enrich.Rejected {
		t.Fatalf("got %+v, %v", a, failure)
	}
	if merged, err := enrich.Merge([]byte(`{"title":"Vienna"}`), a.Outcomes[0].Fields); err != nil ||
		!strings.HasPrefix(string(merged), `{"title":"Vienna","vector":[`) {
		t.Errorf("got %s, %v", merged, err)
	}
}

func TestTheNearestDocumentComesFirst(t *testing.T) {
	enricher := httptest.NewServer(http.HandlerFunc(enrichHandler))
	defer enricher.Close()
	asked := ""
	index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = string(body)
		var hits []map[string]any
		for _, title := range []string{"Rivers of Austria", "The history of Vienna", "A day in Graz"} {
			hits = append(hits, map[string]any{"_source": map[string]any{
				"title": title, "vector": embed(map[string]string{"/title": title}),
			}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"hits": map[string]any{"hits": hits}})
	}))
	defer index.Close()
	for _, knn := range []bool{false, true} {
		found, err := search(enricher.URL, index.URL, "history of viennas", knn)
		if err != nil || len(found) != 3 || found[0].title != "The history of Vienna" || found[0].score < 0.5 {
			t.Errorf("got %v, %v, want Vienna first", found, err)
		}
		if strings.Contains(asked, `"knn"`) != knn {
			t.Errorf("asked for %s", asked)
		}
	}
	if _, err := search(enricher.URL, index.URL, "...", false); err == nil {
		t.Error("a text without words has a vector")
	}
}
