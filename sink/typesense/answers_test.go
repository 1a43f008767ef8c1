// SPDX-License-Identifier: Apache-2.0

package typesense_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/sinktest"
	"github.com/lullhq/lull/sink/typesense"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/answers.md")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// row is one kind of answer of Typesense. A row says how a fake server gives the answer and, if
// possible, how a real server can be made to give it.
type row struct {
	sinktest.Answer
	imports, deletes http.HandlerFunc
	change           func(*typesense.Options)
	real             func(t *testing.T, s *typesense.Sink) *typesense.Sink
}

// says returns a handler that answers with a status, a body, and headers (name, value, ...).
func says(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const (
	success    = `{"success":true}`
	noIndex    = `{"message": "Not Found"}`
	deleted    = `{"id":"b"}`
	noDocument = `{"message": "Could not find a document with id: secret"}`
)

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func of(kind sink.OutcomeKind, reason string) sinktest.Answer {
	o := sink.Outcome{Kind: kind, Reason: reason}
	return sinktest.Answer{Put: o, Delete: o}
}

func apart(kind sink.OutcomeKind, reason string) sink.Outcome {
	return sink.Outcome{Kind: kind, Reason: reason, Apart: true}
}

func putOnly(o sink.Outcome) sinktest.Answer { return sinktest.Answer{Put: o} }

func putUnknown(reason string) sinktest.Answer {
	return putOnly(sink.Outcome{Kind: sink.Unknown, Reason: reason})
}

func after(a sinktest.Answer, d time.Duration) sinktest.Answer {
	a.Put.RetryAfter, a.Delete.RetryAfter = d, d
	return a
}

func row1(a sinktest.Answer, engine, what, why string) sinktest.Answer {
	a.Engine, a.Says, a.Why = engine, what, why
	return a
}

func with(document string, a sinktest.Answer) sinktest.Answer {
	a.Document = document
	return a
}

const (
	usual = "" // the outcome itself says why: docs/sinks/opensearch.md lists the outcomes
	fits  = "it does not fit"
)

func made(t *testing.T, s *typesense.Sink) *typesense.Sink {
	t.Helper()
	s.Write(t.Context(), []sink.Op{{Doc: "content#x", Kind: event.Put, Fence: 1, Document: []byte(`{}`)}})
	return s
}

// limited creates a key that allows only the given actions, and returns a sink with that key.
func limited(actions string) func(*testing.T, *typesense.Sink) *typesense.Sink {
	return func(t *testing.T, s *typesense.Sink) *typesense.Sink {
		t.Helper()
		var k struct {
			Value string `json:"value"`
		}
		call(t, http.MethodPost, s.URL+"/keys", `{"description":"test","actions":[`+actions+`],"collections":["`+
			strings.ReplaceAll(s.Index, "{collection}", ".*")+`"]}`, &k)
		o := s.Options
		o.Transport, o.Key = nil, func(context.Context) (string, error) { return k.Value, nil }
		other, err := typesense.New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = other.Close() })
		return other
	}
}

const documents = `"documents:import","documents:upsert","documents:create","documents:delete","documents:get"`

func rows() []row {
	line := func(text string) http.HandlerFunc { return says(200, text) }
	both := func(status int, body string, headers ...string) row {
		return row{imports: says(status, body, headers...), deletes: says(status, body, headers...)}
	}
	add := func(r row, a sinktest.Answer) row {
		r.Answer = a
		return r
	}
	return []row{
		{Answer: row1(sinktest.Answer{}, "works", "a line `success: true`; 200", "the sink is as was asked for"), real: made},
		{
			Answer:  row1(sinktest.Answer{}, "has nothing to delete", "404 `Could not find a document`", "the document is not there, as was asked for"),
			deletes: says(404, noDocument), real: made,
		},
		{
			Answer:  row1(sinktest.Answer{Delete: apart(sink.Configuration, "collection_missing")}, "has no collection of that name, and lets lull make it", "404 `Not Found`", "a put makes the collection; a delete must not make an empty one"),
			imports: first(says(404, noIndex), line(success)), deletes: says(404, noIndex),
			real: func(_ *testing.T, s *typesense.Sink) *typesense.Sink { return s },
		},
		{
			Answer:  row1(sinktest.Answer{Put: apart(sink.Configuration, "collection_missing"), Delete: apart(sink.Configuration, "collection_missing")}, "has no collection of that name, and does not let lull make it", "404, then 401", "run `lull index install-template` with a key that may"),
			imports: says(404, noIndex), deletes: says(404, noIndex), real: limited(documents),
		},
		{
			Answer:  row1(putOnly(apart(sink.Rejected, "field_type: field title")), "has another type for a field", "a line 400 `Field ... must be`", usual),
			imports: line("{\"code\":400,\"document\":\"{\\\"title\\\":\\\"secret\\\"}\",\"error\":\"Field `title` must be an int32.\",\"success\":false}"),
			change:  func(o *typesense.Options) { o.Fields = []string{"title:int32"} }, real: made,
		},
		{
			Answer:  row1(with(`{"title":"secret\ud800"}`, putOnly(apart(sink.Rejected, "bad_json"))), "cannot read a document", "a line 400 `Bad JSON`", "it has half of a surrogate pair, or a number beyond a float64"),
			imports: line(`{"code":400,"document":"secret","error":"Bad JSON: secret","success":false}`), real: made,
		},
		{
			Answer:  row1(putOnly(apart(sink.Refused, "unclassified")), "refuses a document in a way of its own", "a line with another error", "unclear: it is tried again, maxRefusals times"),
			imports: line(`{"code":400,"error":"secret","success":false}`),
		},
		{
			Answer:  row1(putUnknown("http 500"), "fails for a document", "a line 500", usual),
			imports: line(`{"code":500,"error":"secret","success":false}`),
		},
		add(both(401, `{"message": "Forbidden"}`), row1(of(sink.Configuration, "http 401"), "does not know the key, or denies this to it", "401", usual)),
		add(both(400, `{"message": "secret"}`), row1(of(sink.Configuration, "http 400"), "does not understand the request", "400", usual)),
		add(both(404, "<html>"), row1(of(sink.Configuration, "http 404"), "is something that is not Typesense", "404 with HTML", usual)),
		add(both(302, "", "Location", "/login"), row1(of(sink.Configuration, "http 302"), "is behind a login page", "302", "redirects are not followed")),
		add(both(503, `{"message": "Not Ready or Lagging"}`), row1(of(sink.Throttled, "not_ready"), "is starting, or lags behind its cluster", "503 `Not Ready or Lagging`", usual)),
		add(both(503, "<html>"), row1(of(sink.Unknown, "http 503"), "is behind a proxy that gets no answer", "503 with HTML", "the proxy does not say when it gave up")),
		add(both(422, `{"message": "Rejecting write: running out of resource type: OUT_OF_DISK"}`), row1(of(sink.Throttled, "no_room"), "has no disk or memory left", "422 `Rejecting write`", usual)),
		add(both(429, "", "Retry-After", "7"), row1(after(of(sink.Throttled, "http 429"), 7*time.Second), "throttles", "429 with Retry-After", usual)),
		add(both(500, "secret"), row1(of(sink.Unknown, "http 500"), "fails", "500, or another 5xx", usual)),
		{
			Answer:  row1(putOnly(apart(sink.Rejected, "too_large")), "is behind a proxy that finds the request too large", "413, for a lone document too", "larger requests are cut until they fit"),
			imports: says(413, "<html>secret"),
		},
		{
			Answer:  row1(putUnknown("import_answer"), "answers too much", "two lines for one document", fits),
			imports: line(success + "\n" + success),
		},
		{
			Answer:  row1(putUnknown("import_answer"), "answers nothing", "200, empty", fits),
			imports: line(""),
		},
		{
			Answer:  row1(putUnknown("import_answer"), "is a login page", "200 with HTML", fits),
			imports: line("<html>secret</html>"),
		},
		{Answer: row1(of(sink.Unknown, "interrupted"), "closes the connection", "nothing", usual), imports: hangUp, deletes: hangUp},
		{
			Answer: row1(of(sink.Throttled, "unreachable"), "is away", "no connection", "not a byte was sent"),
			change: func(o *typesense.Options) { o.URL = "http://127.0.0.1:1" },
		},
		{
			Answer: row1(of(sink.Configuration, "no_credentials"), "cannot be asked for want of a key", "nothing: the request was not sent", usual),
			change: func(o *typesense.Options) {
				o.Key = func(context.Context) (string, error) { return "", errors.New("no secret") }
			},
		},
	}
}

// first returns a handler that answers the first request with one, and every later request with
// next.
func first(one, next http.HandlerFunc) http.HandlerFunc {
	asked := make(chan struct{}, 1)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
			one(w, r)
		default:
			next(w, r)
		}
	}
}

func (r row) open(t *testing.T) sink.Sink {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		answer := says(200, success)
		switch {
		case q.Method == http.MethodDelete && r.deletes != nil:
			answer = r.deletes
		case q.Method == http.MethodDelete:
			answer = says(200, deleted)
		case strings.HasPrefix(q.URL.Path, "/aliases/"):
			answer = says(404, noIndex)
		case q.URL.Path == "/collections":
			if answer = says(201, "{}"); strings.HasPrefix(r.Says, "404, then 401") {
				answer = says(401, "{}")
			}
		case r.imports != nil:
			answer = r.imports
		}
		answer(w, q)
	}))
	t.Cleanup(server.Close)
	o := typesense.Options{URL: server.URL, Index: "lull-{collection}", Key: key}
	if r.change != nil {
		r.change(&o)
	}
	s, err := typesense.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func table() []sinktest.Answer {
	var all []sinktest.Answer
	for _, r := range rows() {
		r.Open = r.open
		all = append(all, r.Answer)
	}
	return all
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	sinktest.Answers(t, table(), sink.Newer) // Typesense has no versions
}

// The documentation page of the kind contains the table that the tests check.
func TestTheAnswersPageIsUpToDate(t *testing.T) {
	t.Parallel()
	sinktest.Page(t, "testdata/answers.md", "go test ./sink/typesense -run TestTheAnswersPage -rewrite", table(), *rewrite)
}

func TestRealServerGivesTheAnswers(t *testing.T) {
	t.Parallel()
	for _, r := range rows() {
		if r.real == nil {
			continue
		}
		t.Run(r.Name(), func(t *testing.T) {
			t.Parallel()
			r.Check(t, r.real(t, real(t, r.change)))
		})
	}
}

// A key with the actions that docs/sinks/typesense.md lists must be enough for a deployed function.
func TestAKeyForDocumentsIsEnough(t *testing.T) {
	t.Parallel()
	s := limited(documents)(t, made(t, real(t, nil)))
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	ops := sinktest.Ops()
	for i, o := range s.Write(t.Context(), ops) {
		if o.Kind != sink.Applied {
			t.Errorf("op %d: %+v", i, o)
		}
	}
	d, found, err := s.Get(t.Context(), ops[0].Doc)
	if !found || err != nil || string(d.Document) != string(ops[0].Document) {
		t.Errorf("got %+v, %t, %v", d, found, err)
	}
}

// Typesense gives a type only to the fields that the settings name, and searches only these fields.
func TestRealServerSearchesTheFieldsThatAreNamed(t *testing.T) {
	t.Parallel()
	s := real(t, func(o *typesense.Options) {
		o.Fields = []string{"title:string", "details.body:string", "tags:string[]:facet", "year:int32"}
	})
	made(t, s)
	ops := []sink.Op{{
		Doc: "content#a", Kind: event.Put, Fence: 1,
		Document: []byte(`{"title":"Vienna","details":{"body":"passports"},"tags":["visa"],"year":2026,"other":"hidden"}`),
	}}
	if o := s.Write(t.Context(), ops)[0]; o.Kind != sink.Applied {
		t.Fatalf("%+v", o)
	}
	for q, want := range map[sink.Query]int{
		{Text: "vienna"}: 1, {Text: "passports", Field: "details.body"}: 1, {Text: "vis", Field: "tags", Prefix: true}: 1,
		{Text: "vienna passports"}: 1, {Text: "hidden"}: 0, {Text: "passports", Field: "title"}: 0,
	} {
		q.Limit = 5
		if found, err := s.Search(t.Context(), q); err != nil || len(found) != want {
			t.Errorf("%+v: found %+v, %v, want %d", q, found, err, want)
		}
	}
}

// Ping says what to correct.
func TestPing(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"ok":true}`: "", `{"ok":false}`: "unhealthy", "<html>": "check the url", "{}": "check the url",
		strings.Repeat(" ", 2<<20) + `{"ok":true}`: "exceeds", // too long for an answer of Typesense
	} {
		server := httptest.NewServer(says(200, body))
		s, err := typesense.New(typesense.Options{URL: server.URL, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Ping(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: got %v, want %q", body, err, want)
		}
		_ = s.Close()
		server.Close()
	}
}
