// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
	"github.com/lullhq/lull/sink/sinktest"
)

// Environment variables with the address of a real server without security. make e2e starts
// OpenSearch 2.x, and make e2e-sinks starts Elasticsearch.
const (
	openSearchVariable    = "LULL_TEST_OPENSEARCH"
	elasticsearchVariable = "LULL_TEST_ELASTICSEARCH"
)

// product returns the product of the real server. A test run uses one server.
func product() opensearch.Product {
	if os.Getenv(openSearchVariable) == "" && os.Getenv(elasticsearchVariable) != "" {
		return opensearch.Elasticsearch
	}
	return opensearch.OpenSearch
}

func server(t *testing.T) string {
	t.Helper()
	at := os.Getenv(openSearchVariable)
	if product() == opensearch.Elasticsearch {
		at = os.Getenv(elasticsearchVariable)
	}
	if at == "" {
		t.Skipf("neither %s nor %s is set: no server to test against", openSearchVariable, elasticsearchVariable)
	}
	return strings.TrimRight(at, "/")
}

// real returns a sink on the server with separate indices, which are deleted afterwards.
func real(t *testing.T, change func(*opensearch.Options)) *opensearch.Sink {
	t.Helper()
	prefix := "lull-test-" + strings.ToLower(rand.Text()[:12]) + "-"
	o := opensearch.Options{
		URL: server(t), Index: prefix + "{collection}", Versions: true,
		Template: prefix + "template", Product: product(),
		// the collections of the suite
		Collections: []shard.Collection{"content", "digits", "hostile", "news", "one", "other", "two"},
	}
	if change != nil {
		change(&o)
	}
	s := newSink(t, o)
	if err := s.Prepare(t.Context()); err != nil {
		t.Fatalf("install template: %v", err)
	}
	t.Cleanup(func() {
		call(t, http.MethodDelete, o.URL+"/"+strings.ReplaceAll(o.Index, "{collection}", "*")+"?expand_wildcards=all",
			"")
		call(t, http.MethodDelete, o.URL+"/_index_template/"+o.Template, "")
	})
	return s
}

func indexURL(s *opensearch.Sink, c string) string {
	return s.URL + "/" + strings.ReplaceAll(s.Index, "{collection}", c)
}

// call sends a request to the server for which the sink has no method.
func call(t *testing.T, method, at, body string) map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, at, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: HTTP %d %s %v", method, at, resp.StatusCode, text, err)
	}
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%s %s: %v", method, at, err)
	}
	return answer
}

func refresh(t *testing.T, s sinktest.Sink) {
	t.Helper()
	remote, ok := s.(*opensearch.Sink)
	if !ok {
		t.Fatalf("%T is not an OpenSearch", s)
	}
	if err := remote.Refresh(t.Context()); err != nil {
		t.Fatalf("refresh: %v", err)
	}
}

func TestRealServer(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, sinktest.Options{
		New:          func(t *testing.T) sinktest.Sink { return real(t, nil) },
		Capabilities: sink.Capabilities{Versions: true, Generation: true},
		Rebuilds:     true,
		Refresh:      refresh,
		Recreate: func(t *testing.T, s sinktest.Sink) sinktest.Sink {
			engine, _ := s.(*opensearch.Sink)
			call(t, http.MethodDelete, indexURL(engine, "content"), "")
			return s
		},
	})
}

func TestRealServerWithoutVersions(t *testing.T) {
	t.Parallel()
	without := func(o *opensearch.Options) { o.Versions = false }
	sinktest.Run(t, sinktest.Options{
		New:     func(t *testing.T) sinktest.Sink { return real(t, without) },
		Refresh: refresh,
	})
}

func TestRealServerInSmallRequests(t *testing.T) {
	t.Parallel()
	s := real(t, func(o *opensearch.Options) { o.BulkDocuments, o.BulkBytes = 7, 2_000 })
	ops := make([]sink.Op, 50)
	for i := range ops {
		ops[i] = put(fmt.Sprintf("content#%d", i), 1, fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", i*100)))
	}
	for i, o := range s.Write(t.Context(), ops) {
		if o.Kind != sink.Applied {
			t.Errorf("op %d: %s (%s)", i, o.Kind, o.Reason)
		}
	}
}

func TestRealServerRejectsWhatTheMappingForbids(t *testing.T) {
	t.Parallel()
	s := real(t, nil)
	call(t, http.MethodPut, indexURL(s, "strict"), `{"mappings":{"dynamic":"strict","properties":{
		"_lull":{"type":"object","dynamic":true},"title":{"type":"text"},"views":{"type":"long"},"details":{"properties":{"size":{"type":"integer"}}},"tag":{"type":"keyword"}}}}`)
	tests := []struct{ document, reason string }{
		{`{"title":"fine","views":1}`, ""},
		{`{"title":"x","color":"secret"}`, "strict_dynamic_mapping_exception: field color"},
		{`{"views":"secret"}`, "mapper_parsing_exception: field views"},
		{`{"details":{"size":"secret"}}`, "mapper_parsing_exception: field details.size"},
		{`{"details":"secret"}`, "mapper_parsing_exception: field details"},
		{`{"tag":"` + strings.Repeat("secret", 6_000) + `"}`, "illegal_argument_exception: field tag"},
		{`{"title":{"secret":1}}`, "mapper_parsing_exception: field title"},
		{`{"title":"fine too"}`, ""},
	}
	ops := make([]sink.Op, len(tests))
	for i, tt := range tests {
		ops[i] = put(fmt.Sprintf("strict#%d", i), 1, tt.document)
	}
	for i, o := range s.Write(t.Context(), ops) {
		if product() == opensearch.Elasticsearch && !strings.HasPrefix(tests[i].reason, "strict_") {
			class, _, _ := strings.Cut(tests[i].reason, ":")
			tests[i].reason = strings.Replace(tests[i].reason, class, documentParsing, len(class))
		}
		want := sink.Outcome{Kind: sink.Rejected, Apart: true, Status: http.StatusBadRequest, Reason: tests[i].reason}
		if tests[i].reason == "" {
			want = sink.Outcome{Kind: sink.Applied, Status: http.StatusCreated}
		}
		if o != want {
			t.Errorf("%.60s: %+v, want %+v", tests[i].document, o, want)
		}
	}
}

// With the template, a field may have values of different types, if OpenSearch supports that. A
// document that OpenSearch does not accept is Refused, so that lull tries it again.
func TestRealServerWithTheTemplate(t *testing.T) {
	t.Parallel()
	s := real(t, nil)
	write(t, s, sink.Applied,
		put("content#1", 1, `{"n":[1,2.5],"when":"2026-11-20","tag":"x"}`),
		put("content#2", 1, `{"n":"many","when":"soon","tag":1.5}`),
		put("content#3", 1, `{"n":99999999999999999999999,"when":20,"tag":true}`))
	got := s.Write(t.Context(), []sink.Op{put("content#4", 1, `{"mixed":[1,"x"]}`)})[0]
	if want := (sink.Outcome{
		Kind: sink.Refused, Apart: true, Status: http.StatusBadRequest,
		Reason: "illegal_argument_exception: field mixed",
	}); got != want {
		t.Errorf("two types at once: %+v, want %+v", got, want)
	}
	write(t, s, sink.Applied, put("content#5", 1, `{"mixed":1}`))
	write(t, s, sink.Applied, put("content#4", 2, `{"mixed":[1,"x"]}`))
}

// A search in the subfield keyword of a number field finds the digits of a number, and values that
// are not numbers. A field of the type long could not store the first document.
func TestRealServerFindsWhatANumberCannotHold(t *testing.T) {
	t.Parallel()
	s := real(t, nil)
	write(t, s, sink.Applied, put("content#place", 1, `{"v":[16,48.2]}`))
	for id, v := range map[string]string{"even": "9007199254740992", "odd": "9007199254740993", "text": `"not a number"`} {
		write(t, s, sink.Applied, put("content#"+id, 1, `{"v":`+v+`}`))
	}
	refresh(t, s)
	for query, want := range map[string]string{
		`v.keyword:9007199254740992`: "even", `v.keyword:9007199254740993`: "odd", `v.keyword:"not a number"`: "text",
		`v:[48.1 TO 48.3]`: "place", `_ignored:v`: "text",
	} {
		answer := call(t, http.MethodGet, indexURL(s, "content")+"/_search?filter_path=hits.hits._id&q="+url.QueryEscape(query), "")
		if got, _ := json.Marshal(answer); string(got) != `{"hits":{"hits":[{"_id":"`+want+`"}]}}` {
			t.Errorf("%s finds %s, want %s", query, got, want)
		}
	}
}

func TestRealServerTakesTheFenceAsExternalVersion(t *testing.T) {
	t.Parallel()
	s := real(t, nil)
	write(t, s, sink.Applied, put("content#a", 1_700_000_000_000_001, `{}`))
	doc := call(t, http.MethodGet, indexURL(s, "content")+"/_doc/a", "")
	if got := doc["_version"]; got != 1_700_000_000_000_001.0 {
		t.Errorf("_version %v", got)
	}
	write(t, s, sink.Newer, put("content#a", 1_700_000_000_000_000, `{}`))
}

// After OpenSearch has forgotten a delete, it applies an older write. Therefore the row of the
// document must refuse the older write.
func TestRealServerForgetsDeletes(t *testing.T) {
	t.Parallel()
	s := real(t, nil)
	call(t, http.MethodPut, indexURL(s, "content"), `{"settings":{"index.gc_deletes":"10ms","number_of_replicas":0}}`)
	write(t, s, sink.Applied, put("content#a", 5, `{}`))
	write(t, s, sink.Applied, del("content#a", 10))
	// OpenSearch forgets a delete at a refresh, if the delete is old enough.
	deadline, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for kind := sink.Newer; kind == sink.Newer; {
		if deadline.Err() != nil {
			t.Fatal("the delete was remembered for 30 s")
		}
		write(t, s, sink.Applied, put("content#other", 1, `{}`))
		refresh(t, s)
		kind = s.Write(t.Context(), []sink.Op{put("content#a", 9, `{"back":"from the dead"}`)})[0].Kind
		if kind != sink.Newer && kind != sink.Applied {
			t.Fatalf("outcome %s", kind)
		}
	}
	if _, found, err := s.Get(t.Context(), "content#a"); !found || err != nil {
		t.Errorf("found %t, %v", found, err)
	}
}

func TestRealServerAliases(t *testing.T) {
	t.Parallel()
	s := real(t, nil)
	call(t, http.MethodPut, indexURL(s, "content-v2"),
		fmt.Sprintf(`{"aliases":{%q:{"is_write_index":true}}}`, strings.ReplaceAll(s.Index, "{collection}", "content")))
	write(t, s, sink.Applied, put("content#a", 1, `{"title":"Vienna"}`))
	var all []shard.DocID
	if err := s.All(t.Context(), func(d sink.Stored) error { all = append(all, d.Doc); return nil }); err != nil ||
		len(all) != 1 || all[0] != "content#a" {
		t.Errorf("all: %q, %v", all, err)
	}
	found, err := s.Search(t.Context(), sink.Query{Text: "vienna", Limit: 5})
	if err != nil || len(found) != 1 || found[0].Doc != "content#a" {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestRealServerKeepsForeignDocumentsOut(t *testing.T) {
	t.Parallel()
	s := real(t, nil)
	call(t, http.MethodPut, indexURL(s, "content")+"/_doc/foreign?refresh=true", `{"title":"Vienna"}`)
	write(t, s, sink.Applied, put("content#a", 1, `{"title":"Vienna"}`))
	refresh(t, s)
	count := 0
	if err := s.All(t.Context(), func(sink.Stored) error { count++; return nil }); err != nil || count != 1 {
		t.Errorf("read %d documents, %v", count, err)
	}
	if found, err := s.Search(t.Context(), sink.Query{Text: "vienna", Limit: 5}); err != nil || len(found) != 1 {
		t.Errorf("found %d documents, %v", len(found), err)
	}
	if _, found, err := s.Get(t.Context(), "content#foreign"); err != nil || found {
		t.Errorf("got the foreign document: %t, %v", found, err)
	}
}

// lull tests an index with a copy of a document that has an older fence. The engine must check the
// content of the copy first, and its fence after that. A sampled document may be deleted in the
// meantime, which Get shows.
func TestRealServerLooksAtACopyThatIsOlder(t *testing.T) {
	t.Parallel()
	s := real(t, nil)
	if doc, found, err := s.Sample(t.Context(), "none"); found || err != nil {
		t.Errorf("a sample of no index: %q, %t, %v", doc, found, err)
	}
	original := put("content#a", 5, `{"n":1}`)
	write(t, s, sink.Applied, original)
	refresh(t, s)
	doc, found, err := s.Sample(t.Context(), "content")
	if !found || err != nil || doc != original.Doc {
		t.Fatalf("sample %q, %t, %v", doc, found, err)
	}
	older, bad := original, original
	older.Fence, bad.Fence = 4, 4
	bad.Document = []byte(`{"n":{"x":1}}`)
	write(t, s, sink.Newer, older)
	write(t, s, sink.Rejected, bad)
	write(t, s, sink.Applied, original)
	write(t, s, sink.Applied, del("content#a", 6))
	write(t, s, sink.Newer, original)
	if doc, found, err := s.Sample(t.Context(), "content"); !found || err != nil || doc != original.Doc {
		t.Errorf("a search shows what is deleted until a refresh: %q, %t, %v", doc, found, err)
	}
	if _, found, err := s.Get(t.Context(), doc); found || err != nil {
		t.Errorf("a document that is gone is read back: %t, %v", found, err)
	}
}

// A search finds a write after the next refresh, although Get finds it at once.
func TestRealServerShowsAWriteToSearchesAfterARefresh(t *testing.T) {
	t.Parallel()
	s := real(t, nil)
	if _, found, err := s.Found(t.Context(), "content#a"); found || err != nil {
		t.Errorf("without an index: %t, %v", found, err)
	}
	write(t, s, sink.Applied, put("content#other", 1, `{}`)) // makes the index
	call(t, http.MethodPut, indexURL(s, "content")+"/_settings", `{"index":{"refresh_interval":"-1"}}`)
	want := func(what string, fence shard.Fence) {
		t.Helper()
		got, found, err := s.Found(t.Context(), "content#a")
		if err != nil || found != (fence > 0) || got.Fence != fence || got.Document != nil {
			t.Errorf("%s: found %t %+v, %v, want fence %d", what, found, got, err, fence)
		}
	}
	write(t, s, sink.Applied, put("content#a", 5, `{"n":1}`))
	if _, found, err := s.Get(t.Context(), "content#a"); !found || err != nil {
		t.Fatalf("get: %t, %v", found, err)
	}
	want("before the refresh", 0)
	refresh(t, s)
	want("after the refresh", 5)
	write(t, s, sink.Applied, put("content#a", 6, `{"n":2}`))
	want("a newer write, before the refresh", 5)
	refresh(t, s)
	want("a newer write, after the refresh", 6)
	write(t, s, sink.Applied, del("content#a", 7))
	want("a delete, before the refresh", 6)
	refresh(t, s)
	want("a delete, after the refresh", 0)
}
