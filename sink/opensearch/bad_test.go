// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/aws/decisionlog"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
	_ "github.com/lullhq/lull/source/native"
)

// These tests run the whole pipeline against an engine that gives bad answers. No message may be
// lost: a message stays until its document is written or is a dead letter. The sink is the real
// one, and the engine is an HTTP server. Queues, table and clock come from lull dev and run in
// virtual time. The requests leave the synctest bubble. The virtual time stands still until a
// request is answered.

// bad is an engine that gives bad answers until fixed is set.
type bad struct {
	*engine
	answer handler
	fixed  atomic.Bool
	refuse bool // refuse connections instead of giving bad answers

	mu      sync.Mutex
	written []string // ids that were applied, in order
}

// handler answers one request.
type handler = func(http.ResponseWriter, request)

// always returns an answer that is the same for every request.
func always(h handler) func(*bad) handler { return func(*bad) handler { return h } }

// item returns an answer with an error for the document "bad". Every other document is applied.
func item(status int, kind string) func(*bad) handler {
	return func(b *bad) handler {
		return func(w http.ResponseWriter, r request) {
			b.apply(w, r, "bad", func(item map[string]any) {
				item["status"], item["error"] = status, failure(kind, "secret")
			})
		}
	}
}

// startBad starts an engine that gives the answer until it is fixed. A nil answer refuses
// connections.
func startBad(t *testing.T, answer func(*bad) handler) *bad {
	t.Helper()
	b := &bad{refuse: answer == nil}
	if answer != nil {
		b.answer = answer(b)
	}
	b.engine = start(t, func(w http.ResponseWriter, r request) {
		if b.answer != nil && !b.fixed.Load() {
			b.answer(w, r)
			return
		}
		b.apply(w, r, "")
	})
	return b
}

// apply answers like a healthy engine, except for one document, whose item change modifies.
func (b *bad) apply(w http.ResponseWriter, r request, except string, change ...func(item map[string]any)) {
	if r.URL.Path != "/_bulk" {
		_, _ = w.Write([]byte(`{"version":{"number":"2.19.3","distribution":"opensearch"}}`))
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = w.Write(bulkAnswer(r, func(id string, item map[string]any) {
		if id == except {
			change[0](item)
			return
		}
		b.written = append(b.written, id)
	}))
}

// applied returns the ids of the documents that were written so far, sorted.
func (b *bad) applied() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := slices.Clone(b.written)
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// dial connects to the engine. If the engine refuses connections, dial uses the discard port of the
// loopback address, on which no program listens.
func (b *bad) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if b.refuse && !b.fixed.Load() {
		address = "127.0.0.1:9"
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// pipeline runs lull with the engine as its sink, in a synctest bubble, and calls story. log
// contains the logs of the functions.
func (b *bad) pipeline(t *testing.T, story func(t *testing.T, e *dev.Engine, log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg := config.Default()
		cfg.Sinks = map[string]config.Sink{"search": {Kind: "opensearch", URL: b.URL}}
		cfg.Complete()
		o := opensearch.Options{URL: b.URL, Versions: true}
		// The bubble would wait until an idle connection ends.
		o.Transport = &http.Transport{DisableKeepAlives: true, DialContext: b.dial}
		s, err := opensearch.New(o)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		j := decisionlog.New(&log, slog.LevelInfo, "search", "stack", "lull", "function", "index")
		e, err := dev.New(dev.Options{
			Config: &cfg, Clock: clock.System{}, Sinks: map[string]sink.Sink{"search": s},
			Journal: j,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		e.Start(ctx)
		story(t, e, &log)
		cancel()
		e.Stop()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// publish sends the two documents "bad" and "good". The engine's answer for the first must not
// affect the second.
func publish(t *testing.T, e *dev.Engine) {
	t.Helper()
	for _, id := range []string{"bad", "good"} {
		body := `{"type":"doc.changed","subject":"` + id +
			`","collection":"content","sequence":"1","data":{"title":"secret"}}`
		if err := e.Publish(t.Context(), queue.Outgoing{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
}

// settled waits until no message remains, for a day at most, and returns the dead letters.
func settled(t *testing.T, e *dev.Engine) []ledger.DeadLine {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	if err := e.Settle(ctx); err != nil {
		t.Fatalf("not settled: %v", err)
	}
	r, err := e.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	return r.DeadLetters
}

// says checks that the log contains the reason, and does not quote content.
func says(t *testing.T, log *bytes.Buffer, reason string) {
	t.Helper()
	if !strings.Contains(log.String(), reason) {
		t.Errorf("the log does not say %q:\n%s", reason, log)
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log quotes content:\n%s", log)
	}
}

// If no document is at fault, both documents wait until the sink is healthy again, and are then
// written. A conflict means that the sink has a newer document, or that two writes happened at
// once. A conflict never means that this document was written.
func TestABadSinkKeepsEveryMessage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		answer  func(*bad) handler // nil for no connection
		says    string
		written string // the documents that are written before the sink is fixed
	}{
		{"400 of something that is not an engine", always(respond(400, "<html>secret</html>")), "configuration: http 400", ""},
		{"401", always(respond(401, "Unauthorized")), "configuration: http 401", ""},
		{"403", always(respond(403, `{"Message":"User: secret is not authorized"}`)), "configuration: http 403", ""},
		{
			"404", always(respond(404, whole("index_not_found_exception"))), "configuration: index_not_found_exception", "",
		},
		{
			"409", always(respond(409, whole("resource_already_exists_exception"))),
			"configuration: resource_already_exists_exception", "",
		},
		{"409 for the document", item(409, "version_conflict_engine_exception"), "sink_newer", "good"},
		{
			"429", always(respond(429, whole("circuit_breaking_exception"), "Retry-After", "90")),
			"throttled: circuit_breaking_exception", "",
		},
		{"503", always(respond(503, "secret")), "server_error", ""},
		{
			"503 before anything was applied",
			always(respond(503, whole("cluster_block_exception"), "Retry-After", "5")),
			"throttled: cluster_block_exception", "",
		},
		{"unreachable", nil, "throttled: unreachable", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := startBad(t, tt.answer)
			b.pipeline(t, func(t *testing.T, e *dev.Engine, log *bytes.Buffer) {
				publish(t, e)
				time.Sleep(time.Hour)
				synctest.Wait()
				r, err := e.Report(t.Context())
				if n := e.Left(); n != 2-len(strings.Fields(tt.written)) || err != nil || len(r.DeadLetters) > 0 ||
					b.applied() != tt.written {
					t.Errorf("after an hour: %d messages, dead letters %v, written %q, %v: want %q written, the others kept",
						n, r.DeadLetters, b.applied(), err, tt.written)
				}
				says(t, log, tt.says)
				b.fixed.Store(true)
				if dead := settled(t, e); len(dead) > 0 || b.applied() != "bad good" {
					t.Errorf("fixed: dead letters %v, written %q, want both documents once", dead, b.applied())
				}
			})
		})
	}
}

// If one document is to blame, that document becomes a dead letter with the reason, and the other
// document is written.
func TestABadDocumentIsADeadLetter(t *testing.T) {
	t.Parallel()
	ofRequest := func(answer handler) func(*bad) handler {
		return func(b *bad) handler {
			return func(w http.ResponseWriter, r request) {
				if slices.Contains(r.ids(), "bad") {
					answer(w, r)
					return
				}
				b.apply(w, r, "")
			}
		}
	}
	tests := []struct {
		name   string
		answer func(*bad) handler
		reason deadletter.Reason
		says   string
	}{
		{
			"400 for the document", item(400, "mapper_parsing_exception"), deadletter.RejectedBySink,
			"mapper_parsing_exception",
		},
		{
			"400 for the request", ofRequest(respond(400, whole("illegal_argument_exception"))), deadletter.Refusals,
			"illegal_argument_exception",
		},
		{"413 for the document", item(413, "too_large_exception"), deadletter.RejectedBySink, "too_large_exception"},
		{
			"413 for the request", ofRequest(respond(413, "<html>secret</html>")), deadletter.RejectedBySink,
			sink.TooLarge,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := startBad(t, tt.answer)
			b.pipeline(t, func(t *testing.T, e *dev.Engine, log *bytes.Buffer) {
				publish(t, e)
				dead := settled(t, e)
				if len(dead) != 1 || dead[0].Key != "content#bad" || dead[0].Reason != string(tt.reason) ||
					b.applied() != "good" {
					t.Errorf("dead letters %v, written %q: want one of content#bad, %s, and the other document", dead,
						b.applied(), tt.reason)
				}
				says(t, log, tt.says)
			})
		})
	}
}
