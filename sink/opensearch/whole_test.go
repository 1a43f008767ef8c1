package opensearch_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
)

// An answer that holds for the whole request gives every op the same outcome, and nothing is asked
// twice.
func TestAnswersToTheWholeRequest(t *testing.T) {
	t.Parallel()
	const date, later = "Fri, 20 Nov 2026 16:00:00 GMT", "Fri, 20 Nov 2026 16:02:30 GMT"
	tests := []struct {
		name   string
		answer func(http.ResponseWriter, request)
		want   sink.Outcome
	}{
		{"401", respond(401, "Unauthorized"), sink.Outcome{Kind: sink.Throttled, Reason: "sink_config: http 401"}},
		{
			"403 of OpenSearch", respond(403, whole("security_exception")),
			sink.Outcome{Kind: sink.Throttled, Reason: "sink_config: security_exception"},
		},
		{
			"403 of AWS", respond(403, `{"Message":"User: secret is not authorized"}`),
			sink.Outcome{Kind: sink.Throttled, Reason: "sink_config: http 403"},
		},
		{
			"404", respond(404, whole("index_not_found_exception")),
			sink.Outcome{Kind: sink.Throttled, Reason: "sink_config: index_not_found_exception"},
		},
		{"405", respond(405, ""), sink.Outcome{Kind: sink.Throttled, Reason: "sink_config: http 405"}},
		{
			"a redirect is not followed", respond(302, "", "Location", "/login"),
			sink.Outcome{Kind: sink.Throttled, Reason: "sink_config: http 302"},
		},
		{
			"400 of something else", respond(400, "<html>secret</html>"),
			sink.Outcome{Kind: sink.Throttled, Reason: "sink_config: http 400"},
		},
		{"408", respond(408, ""), sink.Outcome{Kind: sink.Unknown, Reason: "server_error"}},
		{"429", respond(429, "429 Too Many Requests /_bulk"), sink.Outcome{Kind: sink.Throttled, Reason: "throttled"}},
		{
			"429 with seconds", respond(429, whole("circuit_breaking_exception"), "Retry-After", "17"),
			sink.Outcome{Kind: sink.Throttled, Reason: "circuit_breaking_exception", RetryAfter: 17 * time.Second},
		},
		{
			"429 with a date", respond(429, "", "Retry-After", later, "Date", date),
			sink.Outcome{Kind: sink.Throttled, Reason: "throttled", RetryAfter: 150 * time.Second},
		},
		{
			"429 with a date that is past", respond(429, "", "Retry-After", date, "Date", later),
			sink.Outcome{Kind: sink.Throttled, Reason: "throttled"},
		},
		{
			"429 with nonsense", respond(429, "", "Retry-After", "soon"),
			sink.Outcome{Kind: sink.Throttled, Reason: "throttled"},
		},
		{
			"429 with a year", respond(429, "", "Retry-After", "31536000"),
			sink.Outcome{Kind: sink.Throttled, Reason: "throttled", RetryAfter: time.Hour},
		},
		{
			"500", respond(500, whole("null_pointer_exception")),
			sink.Outcome{Kind: sink.Unknown, Reason: "null_pointer_exception"},
		},
		{"502", respond(502, "Bad Gateway"), sink.Outcome{Kind: sink.Unknown, Reason: "server_error"}},
		{
			"503 of a proxy", respond(503, "secret", "Retry-After", "5"),
			sink.Outcome{Kind: sink.Unknown, Reason: "server_error"},
		},
		{
			"503 before anything was applied", respond(503, whole("cluster_block_exception"), "Retry-After", "5"),
			sink.Outcome{Kind: sink.Throttled, Reason: "cluster_block_exception", RetryAfter: 5 * time.Second},
		},
		{
			"503 without a manager", respond(503, whole("cluster_manager_not_discovered_exception")),
			sink.Outcome{Kind: sink.Throttled, Reason: "cluster_manager_not_discovered_exception"},
		},
		{"504", respond(504, "{}"), sink.Outcome{Kind: sink.Unknown, Reason: "server_error"}},
		{"507", respond(507, `{"error":"secret"}`), sink.Outcome{Kind: sink.Unknown, Reason: "server_error"}},
		{
			"an error type that is none", respond(500, whole("it is a secret")),
			sink.Outcome{Kind: sink.Unknown, Reason: "server_error"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := start(t, tt.answer)
			got := e.sink(t, nil).Write(t.Context(), three())
			quiet(t, got)
			for i, o := range got {
				o.Status = 0
				if o != tt.want {
					t.Errorf("op %d: %+v, want %+v", i, o, tt.want)
				}
			}
			e.got(t, 1)
		})
	}
}

// An answer that cannot be read, or does not fit, leaves every op unknown: none is known to be
// applied, none is sent again.
func TestBulkAnswerOfWrongLengthIsUnknown(t *testing.T) {
	t.Parallel()
	answer := func(body string) func(http.ResponseWriter, request) { return respond(200, body) }
	const a, b, c = `{"index":{"_id":"a","status":201}}`, `{"delete":{"_id":"b","status":404}}`,
		`{"index":{"_id":"c","status":200}}`
	items := func(items ...string) string { return `{"errors":false,"items":[` + strings.Join(items, ",") + `]}` }
	tests := []struct {
		name   string
		answer func(http.ResponseWriter, request)
	}{
		{"shorter", answer(items(a, b))},
		{"longer", answer(items(a, b, c, c))},
		{"in another order", answer(items(c, b, a))},
		{"with another action", answer(items(a, `{"index":{"_id":"b","status":201}}`, c))},
		{"without items", answer(`{"errors":false}`)},
		{"empty", answer("")},
		{"no JSON", answer("<html>signed out</html>")},
		{"another type", answer(`{"items":{"index":1}}`)},
		{"cut inside the text", answer(items(a, b, c)[:40])},
		{"cut inside the connection", func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Length", "1000")
			w.Write([]byte(items(a, b, c)))
		}},
		{"connection reset before the answer", func(w http.ResponseWriter, _ request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // close with a reset
			}
			conn.Close()
		}},
		{"connection closed before the answer", func(http.ResponseWriter, request) { panic(http.ErrAbortHandler) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := start(t, tt.answer)
			s := e.sink(t, nil)
			got := s.Write(t.Context(), three())
			quiet(t, got)
			for i, o := range got {
				if o.Kind != sink.Unknown {
					t.Errorf("op %d: %+v, want unknown", i, o)
				}
			}
			e.got(t, 1)
		})
	}
	e := start(t, answer(items(a, b, c)))
	write(t, e.sink(t, nil), sink.Applied, three()...)
}

// The library would try again on a connection that was used before; here nobody does.
func TestNothingIsRepeatedOnAUsedConnection(t *testing.T) {
	t.Parallel()
	var bad atomic.Bool
	e := start(t, func(w http.ResponseWriter, r request) {
		if bad.Load() {
			panic(http.ErrAbortHandler)
		}
		applied(w, r)
	})
	s := e.sink(t, nil)
	write(t, s, sink.Applied, three()...)
	bad.Store(true)
	write(t, s, sink.Unknown, three()...)
	e.got(t, 2)
}

func TestNoConnectionMeansThatNothingWasApplied(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	for _, url := range []string{"http://" + address, "https://" + address} {
		s := newSink(t, opensearch.Options{URL: url, BulkDocuments: 1})
		for i, o := range s.Write(t.Context(), three()) {
			if o.Kind != sink.Throttled || o.Reason != []string{"unreachable", "not_sent", "not_sent"}[i] {
				t.Errorf("op %d: %+v", i, o)
			}
		}
		if err := s.Ping(t.Context()); err == nil {
			t.Error("a ping without an answer succeeds")
		}
	}
	// TLS that nobody speaks: the connection is had, and no request ever.
	e := start(t, applied)
	write(t, newSink(t, opensearch.Options{URL: "https://" + e.Listener.Addr().String()}), sink.Throttled, three()...)
}

// The context ends while the second of three requests is under way: the first one's answer stays,
// the others are unknown.
func TestAContextThatEndsInBetween(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e := start(t, func(w http.ResponseWriter, r request) {
		if r.ids()[0] == "b" {
			cancel()
			<-r.Context().Done()
			return
		}
		applied(w, r)
	})
	got := e.sink(t, func(o *opensearch.Options) { o.BulkDocuments = 1 }).Write(ctx, three())
	for i, want := range []sink.OutcomeKind{sink.Applied, sink.Unknown, sink.Unknown} {
		if got[i].Kind != want {
			t.Errorf("op %d: %+v, want %s", i, got[i], want)
		}
	}
	e.got(t, 2)
}

// A part that was refused for no document's sake keeps the rest back; one whose fate is unknown
// does not.
func TestWhatFollowsAFailedPart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status   int
		want     []sink.OutcomeKind
		requests int
	}{
		{429, []sink.OutcomeKind{sink.Applied, sink.Throttled, sink.Throttled}, 2},
		{403, []sink.OutcomeKind{sink.Applied, sink.Throttled, sink.Throttled}, 2},
		{500, []sink.OutcomeKind{sink.Applied, sink.Unknown, sink.Applied}, 3},
		{413, []sink.OutcomeKind{sink.Applied, sink.Rejected, sink.Applied}, 3},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.status), func(t *testing.T) {
			t.Parallel()
			e := start(t, func(w http.ResponseWriter, r request) {
				if r.ids()[0] == "b" {
					respond(tt.status, "", "Retry-After", "3")(w, r)
					return
				}
				applied(w, r)
			})
			got := e.sink(t, func(o *opensearch.Options) { o.BulkDocuments = 1 }).Write(t.Context(), three())
			quiet(t, got)
			for i, o := range got {
				if o.Kind != tt.want[i] {
					t.Errorf("op %d: %+v, want %s", i, o, tt.want[i])
				}
			}
			if tt.status == 429 && (got[1].RetryAfter != 3*time.Second || got[2].RetryAfter != 3*time.Second) {
				t.Errorf("retry after %s and %s, want 3s", got[1].RetryAfter, got[2].RetryAfter)
			}
			e.got(t, tt.requests)
		})
	}
}

// A request that is too large is cut until it fits; the document that never fits is rejected alone.
// No op is sent again after an answer that was not a definite refusal.
func TestTooLargeRequestsAreCutInHalves(t *testing.T) {
	t.Parallel()
	fits := func(r request) bool { return len(r.ids()) <= 4 && !strings.Contains(r.body, "huge") }
	e := start(t, func(w http.ResponseWriter, r request) {
		if !fits(r) {
			respond(413, "<html>too large</html>")(w, r)
			return
		}
		applied(w, r)
	})
	ops := make([]sink.Op, 21)
	for i := range ops {
		ops[i] = put(fmt.Sprintf("c#%d", i), 1, `{}`)
	}
	ops[13] = put("c#huge", 1, `{}`)
	for i, o := range e.sink(t, nil).Write(t.Context(), ops) {
		want := sink.Outcome{Kind: sink.Applied, Status: 201}
		if i == 13 {
			want = sink.Outcome{Kind: sink.Rejected, Status: 413, Reason: "too_large"}
		}
		if o != want {
			t.Errorf("op %d: %+v, want %+v", i, o, want)
		}
	}
	accepted := make(map[string]int)
	for _, r := range e.seen() {
		if fits(r) {
			for _, id := range r.ids() {
				accepted[id]++
			}
		}
	}
	for _, op := range ops {
		if n := accepted[op.Doc.ID()]; n != 1 && op.Doc != "c#huge" || n > 1 {
			t.Errorf("%s was accepted %d times", op.Doc, n)
		}
	}
}

// OpenSearch refuses a whole request for one id that is too long, before it applies anything.
func TestARequestRefusedForOneDocumentFindsIt(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]sink.Outcome{
		"action_request_validation_exception": {
			Kind: sink.Rejected, Status: 400,
			Reason: "action_request_validation_exception",
		},
		"illegal_argument_exception": {Kind: sink.Refused, Status: 400, Reason: "illegal_argument_exception"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := start(t, func(w http.ResponseWriter, r request) {
				if strings.Contains(r.body, `"bad"`) {
					respond(400, whole(kind))(w, r)
					return
				}
				applied(w, r)
			})
			ops := append(three(), put("c#bad", 1, `{}`), put("c#e", 1, `{}`))
			for i, o := range e.sink(t, nil).Write(t.Context(), ops) {
				if i == 3 && o != want || i != 3 && o.Kind != sink.Applied {
					t.Errorf("op %d: %+v", i, o)
				}
			}
		})
	}
}
