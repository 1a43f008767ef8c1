// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
)

func TestPing(t *testing.T) {
	t.Parallel()
	const greeting = `{"name":"n","version":{"number":"2.19.3"}}`
	tests := []struct {
		name       string
		answer     func(http.ResponseWriter, request)
		serverless bool
		want       string
	}{
		{"fine", respond(200, greeting), false, ""},
		{"401", respond(401, "secret"), false, "check the sink's auth"},
		{
			"403", respond(403, whole("security_exception")), false,
			"HTTP 403 security_exception: the credentials are not allowed",
		},
		{"404", respond(404, ""), false, "check the url"},
		{"503", respond(503, whole("cluster_block_exception")), false, "not ready"},
		{"a login page", respond(200, "<html>secret</html>"), false, "not an answer of OpenSearch"},
		{"another service", respond(200, `{"status":"up"}`), false, "not an answer of OpenSearch"},
		{"serverless", respond(404, ""), true, ""},
		{
			"serverless without permission", respond(403, `{"error":{"reason":"secret","type":"Forbidden"}}`), true,
			"HTTP 403",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := start(t, tt.answer)
			err := e.sink(t, func(o *opensearch.Options) {
				o.Versions, o.Serverless = !tt.serverless,
					tt.serverless
			}).Ping(t.Context())
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("ping: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) ||
				strings.Contains(err.Error(), "secret")):
				t.Errorf("ping: %v, want %q", err, tt.want)
			}
			denied := map[string]bool{"401": true, "403": true, "serverless without permission": true}[tt.name]
			if errors.Is(err, sink.ErrDenied) != denied {
				t.Errorf("ping: %v, denied: want %t", err, denied)
			}
			if r := e.seen()[0]; r.Method != http.MethodGet || r.URL.Path != "/" || len(e.seen()) != 1 {
				t.Errorf("%d requests, the first %s %s", len(e.seen()), r.Method, r.URL)
			}
		})
	}
}

// Errors of readers say what was asked and which error came back. errors.As gives the status.
func TestReadersFailLoudly(t *testing.T) {
	t.Parallel()
	for status, answer := range map[int]string{
		403: whole("security_exception"), 500: whole("secret thing"),
		200: "<html>secret</html>",
	} {
		e := start(t, respond(status, answer))
		s := e.sink(t, func(o *opensearch.Options) { o.Collections = []shard.Collection{"c"} })
		_, _, get := s.Get(t.Context(), "c#a")
		_, search := s.Search(t.Context(), sink.Query{Text: "secret", Limit: 1})
		all := s.All(t.Context(), func(sink.Stored) error { return nil })
		for verb, err := range map[string]error{
			"get": get, "search": search, "all": all,
			"template": s.Prepare(t.Context()),
		} {
			if verb == "template" && status == 200 {
				continue // Prepare does not read the body of that answer
			}
			if err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s after %d: %v", verb, status, err)
			}
			var refused *opensearch.Error
			if status != 200 && (!errors.As(err, &refused) || refused.Status != status) {
				t.Errorf("%s after %d: %v is not an Error with that status", verb, status, err)
			}
		}
	}
}

// A program that may write into the index may break a document's mark. The others are still read.
func TestAMarkThatCannotBeReadHidesNoOtherDocument(t *testing.T) {
	t.Parallel()
	e := start(t, func(w http.ResponseWriter, r request) {
		answer := `{"indices":[{"name":"test-content","attributes":["open"]}]}`
		if strings.HasSuffix(r.URL.Path, "/_search") {
			answer = `{"hits":{"hits":[
				{"_id":"a","_source":{"_lull":{"order_key":"k","fence":"7"}}},
				{"_id":"b","_source":"secret"},
				{"_id":"c","_source":{"_lull":{"order_key":"k","fence":7}}}]}}`
		}
		respond(200, answer)(w, r)
	})
	var got []string
	err := e.sink(t, nil).All(t.Context(), func(s sink.Stored) error {
		got = append(got, string(s.Doc)+" "+s.Key)
		return nil
	})
	if err != nil || !slices.Equal(got, []string{"content#a ", "content#b ", "content#c k"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestGetKnowsTheKindsOfMissing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		answer string
		found  bool
		failed bool
	}{
		{`{"docs":[{"found":false}]}`, false, false},
		{`{"docs":[{"error":{"type":"index_not_found_exception","reason":"secret"}}]}`, false, false},
		{`{"docs":[{"found":true,"_source":{"title":"not lull's"}}]}`, false, false},
		{`{"docs":[{"found":true,"_source":{"_lull":{"version":"7"},"n":1.10}}]}`, true, false},
		{`{"docs":[{"error":{"type":"security_exception","reason":"secret"}}]}`, false, true},
		{`{"docs":[{"found":true,"_source":"secret"}]}`, false, true},
		{`{"docs":[]}`, false, true},
	}
	for _, tt := range tests {
		got, found, err := start(t, respond(200, tt.answer)).sink(t, nil).Get(t.Context(), "c#a")
		if found != tt.found || (err != nil) != tt.failed {
			t.Errorf("%s: %+v, %t, %v", tt.answer, got, found, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v quotes content", tt.answer, err)
		}
		if found && (got.Version != "7" || string(got.Document) != `{"n":1.10}`) {
			t.Errorf("%s: %+v", tt.answer, got)
		}
	}
}

// An index without {collection} in its name is for one collection. Documents of another collection
// could replace its documents.
func TestAFixedIndexHoldsOneCollection(t *testing.T) {
	t.Parallel()
	e := start(t, applied)
	s := e.sink(t, func(o *opensearch.Options) { o.Index, o.Collections = "docs", []shard.Collection{"content"} })
	got := s.Write(t.Context(), []sink.Op{put("content#a", 1, `{}`), put("news#a", 1, `{}`)})
	if got[0].Kind != sink.Applied || got[1].Kind != sink.Rejected || got[1].Reason != "other_collection" {
		t.Errorf("outcomes %+v", got)
	}
	if _, found, err := s.Get(t.Context(), "news#a"); found || err != nil {
		t.Errorf("get: %t, %v", found, err)
	}
	if found, err := s.Search(t.Context(), sink.Query{Text: "x", Collection: "news", Limit: 1}); len(found) != 0 ||
		err != nil {
		t.Errorf("search: %v, %v", found, err)
	}
	e.got(t, 1)
}

func TestTemplateIsForOurIndicesOnly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		index       string
		collections []shard.Collection
		want        string
	}{
		{"lull-{collection}", []shard.Collection{"content"}, `["lull-content"]`},
		{"{collection}_v1", []shard.Collection{"content"}, `["content_v1"]`},
		{"{collection}", []shard.Collection{"content", "news"}, `["content","news"]`},
		{"docs", []shard.Collection{"content"}, `["docs"]`},
		{"{collection}", nil, ""},
		{"lull-{collection}", nil, ""}, // lull-* would match an index lull-other of another program
	}
	for _, tt := range tests {
		s := newSink(t, opensearch.Options{URL: "http://127.0.0.1", Index: tt.index, Collections: tt.collections})
		text, err := s.Template()
		if tt.want == "" {
			if err == nil || !strings.Contains(err.Error(), "name them in collections") {
				t.Errorf("template for %s: %s, %v", tt.index, text, err)
			}
			continue
		}
		var template struct {
			Patterns json.RawMessage `json:"index_patterns"`
			Template struct {
				Mappings struct {
					Properties map[string]struct {
						Properties map[string]struct{ Type string }
					}
				}
			}
		}
		if err := errors.Join(err, json.Unmarshal(text, &template)); err != nil {
			t.Fatal(err)
		}
		if string(template.Patterns) != tt.want {
			t.Errorf("patterns of %s: %s, want %s", tt.index, template.Patterns, tt.want)
		}
		// The template must map every field of the metadata, and no other field.
		var meta map[string]map[string]any
		if err := json.Unmarshal(sink.Seal(nil, []byte(`{}`), sink.Meta{}), &meta); err != nil {
			t.Fatal(err)
		}
		mapped := template.Template.Mappings.Properties[sink.MetaField].Properties
		for name := range meta[sink.MetaField] {
			if mapped[name].Type == "" {
				t.Errorf("%s.%s is not mapped", sink.MetaField, name)
			}
			delete(mapped, name)
		}
		if len(mapped) != 0 {
			t.Errorf("mapped without being written: %v", mapped)
		}
	}
}

func TestSettingsBecomeOptions(t *testing.T) {
	t.Parallel()
	no := false
	kind, _ := sink.Lookup(opensearch.Name)
	for _, tt := range []struct {
		settings sink.Settings
		versions bool
	}{
		{sink.Settings{URL: "https://host", Index: "x-{collection}", BulkDocuments: 3, BulkBytes: 4 * setting.KB}, true},
		{sink.Settings{URL: "https://host", Options: opensearch.Settings{Serverless: true}}, false},
		{sink.Settings{URL: "https://host", Versions: &no}, false},
	} {
		tt.settings.Kind = opensearch.Name
		opened, err := kind.Open(t.Context(), tt.settings, sink.Environment{
			Stack: "lull", Name: "search", Collections: []shard.Collection{"content"},
		})
		s, ok := opened.(*opensearch.Sink)
		if err != nil || !ok {
			t.Fatalf("%+v: got %T, %v", tt.settings, opened, err)
		}
		t.Cleanup(func() { s.Close() })
		o, own := s.Options, tt.settings.Options == opensearch.Settings{Serverless: true}
		if o.URL != tt.settings.URL || o.Index != cmp.Or(tt.settings.Index, "{collection}") ||
			o.BulkDocuments != tt.settings.BulkDocuments || o.BulkBytes != int64(tt.settings.BulkBytes) ||
			o.Template != "lull-search" ||
			o.Versions != tt.versions || o.Serverless != own || len(o.Collections) != 1 {
			t.Errorf("%+v became %+v", tt.settings, o)
		}
	}
}
