// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/sinktest"
	"github.com/lullhq/lull/sink/vertex"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collections lists the collections that the test suite writes.
var collections = []event.Collection{
	"a", "conten", "cont", "content", "content-2", "digits", "news", "one", "two", "z0",
}

const place = "/v1/projects/p/locations/global"

func open(t *testing.T, s *Server, change func(*vertex.Options)) *vertex.Sink {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	o := vertex.Options{URL: server.URL + place, DataStore: "lull-{collection}", Collections: collections}
	if change != nil {
		change(&o)
	}
	opened, err := vertex.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

// Every request of the sink fits Google's definition, because the server refuses all other
// requests.
func TestSink(t *testing.T) {
	sinktest.Run(t, sinktest.Options{
		New:      func(t *testing.T) sinktest.Sink { return open(t, New(), nil) },
		NoSearch: true, // the engine has its own rules for words
	})
}

func put(doc, document string) sink.Op {
	return sink.Op{
		Doc: event.DocID(doc), Kind: event.Put, Fence: 1_795_336_827_004_364, Version: "7", Document: []byte(document),
	}
}

// The server refuses each request that does not fit the definition. So the other tests would fail
// if the sink sent a field that the API does not have.
func TestWhatDoesNotFitTheDefinitionIsRefused(t *testing.T) {
	t.Parallel()
	const documents = place + "/collections/default_collection/dataStores/s/branches/default_branch/documents"
	for _, tt := range []struct{ name, verb, path, body, says string }{
		{"a field that is not there", "PATCH", documents + "/a?allowMissing=true", `{"jsonData":"{}","version":"7"}`, "version"},
		{"a field of another type", "PATCH", documents + "/a?allowMissing=true", `{"jsonData":{}}`, "jsonData"},
		{"both kinds of data", "PATCH", documents + "/a?allowMissing=true", `{"jsonData":"{}","structData":{}}`, "data"},
		{"no data", "PATCH", documents + "/a?allowMissing=true", `{}`, "should be provided"},
		{"a parameter that is not there", "PATCH", documents + "/a?upsert=true", `{"jsonData":"{}"}`, "upsert"},
		{"a parameter of another type", "PATCH", documents + "/a?allowMissing=7", `{"jsonData":"{}"}`, "query"},
		{"an id with a space", "PATCH", documents + "/a%20b?allowMissing=true", `{"jsonData":"{}"}`, "RFC 1034"},
		{"an id that is too long", "PATCH", documents + "/" + strings.Repeat("a", 64) + "?allowMissing=true", `{"jsonData":"{}"}`, "RFC 1034"},
		{"an answer's field", "PATCH", documents + "/a?allowMissing=true", `{"jsonData":"{}","indexTime":"2026-11-22T00:00:00Z"}`, "answers only"},
		{"a delete with a body", "DELETE", documents + "/a", `{}`, "body"},
		{"no such method", "PUT", documents + "/a", `{}`, "Method not found"},
		{"a document that is missing", "PATCH", documents + "/a", `{"jsonData":"{}"}`, "not found"},
	} {
		w := httptest.NewRecorder()
		New().ServeHTTP(w, httptest.NewRequest(tt.verb, tt.path, strings.NewReader(tt.body)))
		if w.Code < 400 || !strings.Contains(w.Body.String(), tt.says) {
			t.Errorf("%s: got %d %s, want it refused for %s", tt.name, w.Code, w.Body, tt.says)
		}
	}
}

func TestContentGoesBesideTheDocument(t *testing.T) {
	t.Parallel()
	server := New()
	s := open(t, server, func(o *vertex.Options) { o.Content, o.MimeType = "/details/body", "text/plain" })
	for doc, document := range map[string]string{
		"content#a": `{"details":{"body":"Zürich <b>"}}`, "content#b": `{"details":"no"}`, "content#c": `{"details":{"body":7}}`,
	} {
		if o := s.Write(t.Context(), []sink.Op{put(doc, document)})[0]; o.Kind != sink.Applied {
			t.Fatalf("%s: %+v", doc, o)
		}
	}
	for _, d := range server.there {
		want := ""
		if d.GetId() == "a" {
			want = "Zürich <b>"
		}
		got, mime := string(d.GetContent().GetRawBytes()), d.GetContent().GetMimeType()
		if got != want || got != "" && mime != "text/plain" {
			t.Errorf("%s: content %q (%s), want %q", d.GetId(), got, mime, want)
		}
	}
}

// If the engine returns documents as structures, numbers are doubles. The numbers in lull's own
// fields are still exact.
func TestDocumentsThatComeBackAsStructures(t *testing.T) {
	t.Parallel()
	server := New()
	server.Structs = true
	s := open(t, server, nil)
	op := put("content#A/b", `{"n":9007199254740993,"title":"x"}`)
	if o := s.Write(t.Context(), []sink.Op{op})[0]; o.Kind != sink.Applied {
		t.Fatalf("got %+v", o)
	}
	got, ok, err := s.Get(t.Context(), op.Doc)
	if err != nil || !ok || got.Doc != op.Doc || got.Fence != op.Fence || got.Version != "7" ||
		!strings.Contains(string(got.Document), "9007199254740992") || strings.Contains(string(got.Document), "_lull") {
		t.Errorf("got %+v %s, %t, %v", got, got.Document, ok, err)
	}
}

func TestSearchAsksTheDataStoresOfTheCollections(t *testing.T) {
	t.Parallel()
	s := open(t, New(), func(o *vertex.Options) { o.Collections = []event.Collection{"content", "news"} })
	for _, op := range []sink.Op{
		put("content#a", `{"title":"British Embassy Vienna"}`), put("content#b", `{"title":"Berlin"}`),
		put("news#a", `{"title":"Talks in Vienna"}`),
	} {
		if o := s.Write(t.Context(), []sink.Op{op})[0]; o.Kind != sink.Applied {
			t.Fatalf("got %+v", o)
		}
	}
	for _, tt := range []struct {
		query sink.Query
		want  []event.DocID
	}{
		{sink.Query{Text: "vienna", Limit: 10}, []event.DocID{"content#a", "news#a"}},
		{sink.Query{Text: "vienna", Limit: 1}, []event.DocID{"content#a"}},
		{sink.Query{Text: "embassy vienna", Limit: 10}, []event.DocID{"content#a"}},
		{sink.Query{Text: "vienna", Limit: 10, Collection: "news"}, []event.DocID{"news#a"}},
		{sink.Query{Text: "vienna", Limit: 10, Collection: "others"}, nil},
		{sink.Query{Text: "*", Limit: 10}, nil},
	} {
		found, err := s.Search(t.Context(), tt.query)
		var got []event.DocID
		for _, f := range found {
			got = append(got, f.Doc)
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%+v: got %q, %v, want %q", tt.query, got, err, tt.want)
		}
	}
	if _, err := s.Search(t.Context(), sink.Query{Text: "vienna", Field: "title", Limit: 1}); err == nil {
		t.Error("a search of one field was answered")
	}
}

// A delete in a data store that does not exist deletes nothing. The engine gives the same answer as
// for a missing document, so the sink must distinguish the two cases.
func TestADeleteFromADataStoreThatDoesNotExist(t *testing.T) {
	t.Parallel()
	server := New()
	server.Missing = []string{"lull-news"}
	s := open(t, server, nil)
	for _, tt := range []struct {
		doc     event.DocID
		present bool
		want    sink.OutcomeKind
	}{
		{"content#a", false, sink.Applied},
		{"content#a", true, sink.Applied}, // another client has deleted the document
		{"news#a", true, sink.Configuration},
		{"news#a", false, sink.Applied}, // the document never existed
	} {
		o := s.Write(t.Context(), []sink.Op{{Doc: tt.doc, Kind: event.Delete, Fence: 1, Present: tt.present}})[0]
		if o.Kind != tt.want {
			t.Errorf("%s, present %t: got %+v, want %s", tt.doc, tt.present, o, tt.want)
		}
	}
	if o := s.Write(t.Context(), []sink.Op{put("news#a", `{}`)})[0]; o.Kind != sink.Configuration || !o.Apart {
		t.Errorf("a put: got %+v", o)
	}
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "create the data store") {
		t.Errorf("ping: got %v", err)
	}
}

func TestCredentialsAreSent(t *testing.T) {
	t.Parallel()
	for token, ok := range map[string]bool{"right": true, "wrong": false} {
		server := New()
		server.Token = "right"
		s := open(t, server, func(o *vertex.Options) {
			o.Authenticate = func(r *http.Request) error { r.Header.Set("Authorization", "Bearer "+token); return nil }
		})
		if o := s.Write(t.Context(), []sink.Op{put("content#a", `{}`)})[0]; (o.Kind == sink.Applied) != ok {
			t.Errorf("%s: got %+v", token, o)
		}
	}
}
