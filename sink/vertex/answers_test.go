// SPDX-License-Identifier: Apache-2.0

package vertex_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/sinktest"
	"github.com/lullhq/lull/sink/vertex"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/answers.md")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	usual = "" // the outcome itself says why: docs/sinks/opensearch.md lists the outcomes
	place = "/v1/projects/p/locations/global"
	ok    = `{"name":"projects/7/locations/global/collections/default_collection/dataStores/content/branches/0/documents/a"}`
)

// fails returns a handler that answers with an error of Google, whose message quotes content.
func fails(code int, status, details string, headers ...string) http.HandlerFunc {
	return answers(code, fmt.Sprintf(`{"error":{"code":%d,"status":%q,"message":"secret","details":[%s]}}`, code, status, details), headers...)
}

// answers returns a handler that gives the answer to a patch. A delete gets the same answer, unless
// the answer is a success.
func answers(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// byMethod returns a handler that answers a patch, a delete and a list in different ways.
func byMethod(patch, del, list http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		map[string]http.HandlerFunc{"PATCH": patch, "DELETE": del, "GET": list}[r.Method](w, r)
	}
}

func server(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(answer)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // hide errors about connections that the test breaks
	s.Start()
	t.Cleanup(s.Close)
	return s.URL + place
}

func opened(t *testing.T, o vertex.Options) *vertex.Sink {
	t.Helper()
	o.DataStore, o.Collections = sink.Placeholder, []event.Collection{"content"}
	s, err := vertex.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func both(o sink.Outcome) sinktest.Answer { return sinktest.Answer{Put: o, Delete: o} }

func of(kind sink.OutcomeKind, reason string) sink.Outcome {
	return sink.Outcome{Kind: kind, Reason: reason}
}

func apart(kind sink.OutcomeKind, reason string) sink.Outcome {
	return sink.Outcome{Kind: kind, Reason: reason, Apart: true}
}

func after(o sink.Outcome, d time.Duration) sink.Outcome {
	o.RetryAfter = d
	return o
}

// rows returns the table of testdata/answers.md, which says what each answer means. In a test, the
// delete follows the put. The delete is not sent if the answer to the put is about all documents.
func rows(page bool) []sinktest.Answer {
	applied := sink.Outcome{Kind: sink.Applied}
	written, gone, missing := answers(200, ok), answers(200, "{}"), fails(404, "NOT_FOUND", "")
	list := []struct {
		engine, says, why string
		answer            sinktest.Answer
		by                http.HandlerFunc
	}{
		{"has it", "200 with the document; 200 with `{}`", "both are applied when they are answered", both(applied), byMethod(written, gone, nil)},
		{
			"has nothing to delete", "404 `NOT_FOUND`, and 200 to a list of the data store", "the document is not there, as was asked for",
			both(applied), byMethod(written, missing, answers(200, "{}")),
		},
		{
			"has no such data store", "404 `NOT_FOUND`, to a list of the data store too",
			"it holds for this collection: the delete of a document that should be there has deleted nothing",
			both(apart(sink.Configuration, "data_store_missing")), missing,
		},
		{
			"answers with another document", "200 with another name", "it does not fit",
			both(of(sink.Unknown, "answer")), answers(200, strings.Replace(ok, "documents/a", "documents/z", 1)),
		},
		{"is a web page", "200 with HTML", "it does not fit", both(of(sink.Unknown, "answer")), answers(200, "<html>secret")},
		{
			"does not take the document", "400 `INVALID_ARGUMENT`", "the document, or the data store: index asks",
			both(apart(sink.Rejected, "INVALID_ARGUMENT: field document.json_data")),
			fails(400, "INVALID_ARGUMENT", `{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"document.json_data","description":"secret"}]}`),
		},
		{
			"names a field that looks like content", "400 `INVALID_ARGUMENT`", "a name that might be content is left out",
			both(apart(sink.Rejected, "INVALID_ARGUMENT")),
			fails(400, "INVALID_ARGUMENT", `{"reason":"a secret","fieldViolations":[{"field":"a secret"}]}`),
		},
		{"finds the document too large", "413", usual, both(apart(sink.Rejected, "too_large")), answers(413, "secret")},
		{
			"takes no documents yet", "400 `FAILED_PRECONDITION`", "it holds for this collection's data store",
			both(apart(sink.Configuration, "FAILED_PRECONDITION")), fails(400, "FAILED_PRECONDITION", ""),
		},
		{
			"writes the document already", "409 `ABORTED`", "two writes of one document at once: this one was undone",
			both(apart(sink.Throttled, "ABORTED")), fails(409, "ABORTED", ""),
		},
		{"has another conflict", "409", usual, both(of(sink.Unknown, "ALREADY_EXISTS")), fails(409, "ALREADY_EXISTS", "")},
		{
			"is out of quota", "429 `RESOURCE_EXHAUSTED` with RetryInfo", usual, both(after(of(sink.Throttled, "RESOURCE_EXHAUSTED"), 17500*time.Millisecond)),
			fails(429, "RESOURCE_EXHAUSTED", `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17.5s"}`),
		},
		{
			"is out of quota", "429 with Retry-After", usual, both(after(of(sink.Throttled, "RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED"), 9*time.Second)),
			fails(429, "RESOURCE_EXHAUSTED", `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED"}`, "Retry-After", "9"),
		},
		{
			"is out of quota for a year", "429 with RetryInfo", "a slip in its clock must not stop indexing for a day",
			both(after(of(sink.Throttled, "RESOURCE_EXHAUSTED"), time.Hour)), fails(429, "RESOURCE_EXHAUSTED", `{"retryDelay":"9000h"}`),
		},
		{"does not know lull", "401 `UNAUTHENTICATED`", usual, both(of(sink.Configuration, "UNAUTHENTICATED")), fails(401, "UNAUTHENTICATED", "")},
		{
			"does not let lull write", "403 `PERMISSION_DENIED`", usual, both(of(sink.Configuration, "PERMISSION_DENIED SERVICE_DISABLED")),
			fails(403, "PERMISSION_DENIED", `{"reason":"SERVICE_DISABLED"}`),
		},
		{"is not at this address", "404 with HTML", usual, both(of(sink.Configuration, "http 404")), answers(404, "<html>secret")},
		{"is elsewhere", "302", "redirects are not followed", both(of(sink.Configuration, "http 302")), answers(302, "", "Location", "/secret")},
		{"cannot be asked without credentials", "nothing: the request was not sent", usual, both(of(sink.Configuration, "no_credentials")), nil},
		{"is away", "no connection", "not a byte was sent", both(of(sink.Throttled, "unreachable")), nil},
		{"fails", "500 `INTERNAL`", usual, both(of(sink.Unknown, "INTERNAL")), fails(500, "INTERNAL", "")},
		{"is not available", "503 `UNAVAILABLE`", usual, both(of(sink.Unknown, "UNAVAILABLE")), fails(503, "UNAVAILABLE", "", "Retry-After", "5")},
		{"took too long", "504 `DEADLINE_EXCEEDED`", usual, both(of(sink.Unknown, "DEADLINE_EXCEEDED")), fails(504, "DEADLINE_EXCEEDED", "")},
		{"gave up", "499 `CANCELLED`", usual, both(of(sink.Unknown, "CANCELLED")), fails(499, "CANCELLED", "")},
		{"closes the connection", "nothing", usual, both(of(sink.Unknown, "interrupted")), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	}
	all := make([]sinktest.Answer, len(list))
	for i, l := range list {
		all[i] = l.answer
		all[i].Engine, all[i].Says, all[i].Why = l.engine, l.says, l.why
		all[i].Open = func(t *testing.T) sink.Sink {
			// Requests run one after the other, so the answer to the first can stop the second.
			o := vertex.Options{Parallel: 1, URL: "http://127.0.0.1:1" + place}
			if l.by != nil {
				o.URL = server(t, l.by)
			} else if l.answer.Put.Reason == "no_credentials" {
				o.Authenticate = func(*http.Request) error { return errors.New("secret") }
			}
			return opened(t, o)
		}
		if put := all[i].Put; !page && (put.Kind == sink.Throttled || put.Kind == sink.Configuration) && !put.Apart {
			all[i].Delete = after(of(sink.Throttled, "not_sent"), put.RetryAfter)
		}
	}
	return all
}

func TestAnswers(t *testing.T) {
	sinktest.Answers(t, rows(false), sink.Newer, sink.Refused)
	sinktest.Page(t, "testdata/answers.md", "go test ./sink/vertex -run TestAnswers -rewrite", rows(true), *rewrite)
}

// Each document is one request. The options limit how many requests run at the same time. No
// request is sent after the context has ended.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	var now, most, all atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	url := server(t, func(_ http.ResponseWriter, r *http.Request) {
		for n := now.Add(1); n > most.Load(); n = now.Load() {
			most.Store(n)
		}
		if all.Add(1) == 50 {
			cancel()
		}
		_, _ = io.Copy(io.Discard, r.Body)
		now.Add(-1)
	})
	ops := make([]sink.Op, 500)
	for i := range ops {
		ops[i] = sink.Op{Doc: event.DocID(fmt.Sprintf("content#%d", i)), Kind: event.Put, Fence: 1, Document: []byte(`{}`)}
	}
	unsent := 0
	for i, o := range opened(t, vertex.Options{URL: url, Parallel: 4}).Write(ctx, ops) {
		if o.Kind == sink.Throttled && o.Apart && o.Reason == "not_sent" {
			unsent++
		} else if o.Kind != sink.Unknown {
			t.Fatalf("op %d: %+v", i, o)
		}
	}
	if most.Load() > 4 || all.Load() > 60 || unsent < 400 {
		t.Errorf("%d requests, %d at a time, %d not sent", all.Load(), most.Load(), unsent)
	}
}

func TestSettingsThatLeadNowhere(t *testing.T) {
	t.Parallel()
	kind, _ := sink.Lookup(vertex.Name)
	const global = "https://discoveryengine.googleapis.com/v1/projects/p/locations/global"
	for _, tt := range []struct {
		name string
		s    sink.Settings
		own  vertex.Store
		want string
	}{
		{"right", sink.Settings{URL: global}, vertex.Store{}, ""},
		{"right, with a slash", sink.Settings{URL: global + "/"}, vertex.Store{}, ""},
		{"right, in Europe", sink.Settings{URL: "https://eu-discoveryengine.googleapis.com/v1/projects/p/locations/eu"}, vertex.Store{}, ""},
		{"of one's own", sink.Settings{URL: "http://127.0.0.1:8092/v1/projects/p/locations/eu"}, vertex.Store{}, ""},
		{"no place", sink.Settings{URL: "https://discoveryengine.googleapis.com"}, vertex.Store{}, "url"},
		{"a data store", sink.Settings{URL: global + "/dataStores/x"}, vertex.Store{}, "url"},
		{"another location's", sink.Settings{URL: strings.Replace(global, "/global", "/eu", 1)}, vertex.Store{}, "url"},
		{"in the clear", sink.Settings{URL: strings.Replace(global, "https", "http", 1)}, vertex.Store{}, "url"},
		{"no data store", sink.Settings{URL: global, Index: "lull.content"}, vertex.Store{}, "index"},
		{"two credentials", sink.Settings{URL: global, Auth: sink.Auth{Kind: sink.AuthKey}}, vertex.Store{Audience: "x"}, "vertex.audience"},
		{"an account for nothing", sink.Settings{URL: global}, vertex.Store{ServiceAccount: "x"}, "vertex.serviceAccount"},
	} {
		tt.s.Options = vertex.Settings{Vertex: tt.own}
		got := ""
		for _, p := range kind.Check(tt.s) {
			got += p.Setting
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
