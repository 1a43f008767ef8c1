// SPDX-License-Identifier: Apache-2.0

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

// net/http would repeat a request on a connection that was used before. The sink must not repeat
// the request.
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
	// The server does not support TLS: there is a connection, but no request is sent.
	e := start(t, applied)
	write(t, newSink(t, opensearch.Options{URL: "https://" + e.Listener.Addr().String()}), sink.Throttled, three()...)
}

// The context ends while the second of three requests runs. The first request keeps its outcome,
// the second is Unknown, and the third is not sent.
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
	for i, want := range []sink.OutcomeKind{sink.Applied, sink.Unknown, sink.Throttled} {
		if got[i].Kind != want {
			t.Errorf("op %d: %+v, want %s", i, got[i], want)
		}
	}
	e.got(t, 2)
}

// If a request is refused and no document is at fault, the remaining requests are not sent. If the
// outcome of a request is unknown, they are sent.
func TestWhatFollowsAFailedPart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status   int
		want     []sink.OutcomeKind
		requests int
	}{
		{429, []sink.OutcomeKind{sink.Applied, sink.Throttled, sink.Throttled}, 2},
		{403, []sink.OutcomeKind{sink.Applied, sink.Configuration, sink.Throttled}, 2},
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

// A request that is too large is halved until it fits. Only the document that never fits is
// rejected. An op is sent again only after a definite refusal.
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

// If one id is too long, OpenSearch refuses the whole request and applies nothing. The sink must
// find the document with that id.
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
