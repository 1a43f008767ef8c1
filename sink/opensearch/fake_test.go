// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
)

// engine is an HTTP server that answers as a test says, and records every request.
type engine struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
}

// request is a request that arrived, with its body.
type request struct {
	*http.Request
	body string
}

// ids returns the ids of the documents in a bulk request, in order.
func (r request) ids() []string {
	var ids []string
	for line := range strings.Lines(r.body) {
		var a map[string]struct {
			ID *string `json:"_id"`
		}
		if json.Unmarshal([]byte(line), &a) != nil {
			continue
		}
		for _, name := range []string{"index", "delete"} {
			if it, ok := a[name]; ok && it.ID != nil {
				ids = append(ids, *it.ID)
			}
		}
	}
	return ids
}

func start(t *testing.T, answer func(w http.ResponseWriter, r request)) *engine {
	t.Helper()
	return startResolving(t, answer, "")
}

// startResolving starts an engine that also answers requests for the index behind a name.
// startResolving uses the texts of resolve one after another, and then repeats the last one. An
// empty text answers 403. Such requests are not recorded.
func startResolving(t *testing.T, answer func(w http.ResponseWriter, r request), resolve ...string) *engine {
	t.Helper()
	e := &engine{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the client hung up while it sent the request
		}
		// the path has names, and not a pattern
		if strings.HasPrefix(r.URL.Path, "/_resolve/index/") && !strings.Contains(r.URL.Path, "*") {
			e.mu.Lock()
			says := resolve[0]
			resolve = resolve[min(1, len(resolve)-1):]
			e.mu.Unlock()
			if says == "" {
				w.WriteHeader(http.StatusForbidden)
			}
			io.WriteString(w, says)
			return
		}
		req := request{Request: r, body: string(body)}
		e.mu.Lock()
		e.requests = append(e.requests, req)
		e.mu.Unlock()
		answer(w, req)
	}))
	t.Cleanup(e.Close)
	return e
}

// seen returns the requests so far.
func (e *engine) seen() []request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.requests)
}

// got checks how many requests have arrived so far.
func (e *engine) got(t *testing.T, want int) {
	t.Helper()
	if n := len(e.seen()); n != want {
		t.Errorf("%d requests, want %d", n, want)
	}
}

// sink returns a sink that writes to the engine.
func (e *engine) sink(t *testing.T, change func(*opensearch.Options)) *opensearch.Sink {
	t.Helper()
	o := opensearch.Options{URL: e.URL, Index: "test-{collection}", Versions: true}
	if change != nil {
		change(&o)
	}
	return newSink(t, o)
}

// respond returns a handler that answers with a status, headers (name, value, ...) and a body.
func respond(status int, body string, headers ...string) func(http.ResponseWriter, request) {
	return func(w http.ResponseWriter, _ request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// applied answers a bulk request with success for every item.
func applied(w http.ResponseWriter, r request) {
	w.Write(bulkAnswer(r, func(string, map[string]any) {}))
}

// bulkAnswer returns a successful answer to a bulk request. change may give an item another status
// or an error.
func bulkAnswer(r request, change func(id string, item map[string]any)) []byte {
	items := []map[string]any{}
	for line := range strings.Lines(r.body) {
		var a map[string]map[string]any
		if json.Unmarshal([]byte(line), &a) != nil {
			continue
		}
		for name, status := range map[string]int{"index": 201, "delete": 200} {
			if id, ok := a[name]["_id"].(string); ok {
				answer := map[string]any{"_index": a[name]["_index"], "_id": id, "status": status}
				change(id, answer)
				items = append(items, map[string]any{name: answer})
			}
		}
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(map[string]any{"took": 1, "errors": false, "items": items}); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// failure returns an error in the form of OpenSearch. The texts of the error quote content of
// documents, which an outcome must not do.
func failure(kind, reason string) map[string]any {
	return map[string]any{"type": kind, "reason": reason, "root_cause": []any{}}
}

// whole returns the body of an answer that reports one error for the whole request.
func whole(kind string) string {
	b, err := json.Marshal(map[string]any{"error": failure(kind, "secret"), "status": 0})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// three returns three ops. The second op is a delete.
func three() []sink.Op {
	return []sink.Op{put("c#a", 1, `{"n":1}`), del("c#b", 2), put("c#c", 3, `{"n":3}`)}
}

// quiet checks that every outcome except Applied has a reason, and that no reason quotes content.
func quiet(t *testing.T, outcomes []sink.Outcome) {
	t.Helper()
	for i, o := range outcomes {
		if strings.Contains(o.Reason, "secret") {
			t.Errorf("outcome %d quotes content: %q", i, o.Reason)
		}
		if o.Kind != sink.Applied && o.Reason == "" {
			t.Errorf("outcome %d (%s) has no reason", i, o.Kind)
		}
	}
}
