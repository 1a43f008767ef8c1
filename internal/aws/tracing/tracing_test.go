// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	trace   = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent  = "00f067aa0ba902b7"
	sampled = "00-" + trace + "-" + parent + "-01"
	flight  = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// The cases come from W3C Trace Context, section 3.2.
func TestTraceparentIsReadAsW3CSays(t *testing.T) {
	t.Parallel()
	const ids = trace + "-" + parent
	for text, want := range map[string]bool{
		sampled:             true,
		"00-" + ids + "-03": true, // other flags are ignored

		"00-" + ids + "-00": false, // not sampled

		"cc-" + ids + "-01-what-comes-later": true,

		"00-" + ids + "-01-more": false,
		"ff-" + ids + "-01":      false,
		"00-" + ids + "-0g":      false,

		"00-" + strings.Repeat("0", 32) + "-" + parent + "-01": false,
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01":  false,
		"00-" + strings.ToUpper(trace) + "-" + parent + "-01":  false,

		"cc-" + ids + "-01-" + strings.Repeat("x", 300): false,

		"":                      false,
		strings.Repeat("-", 60): false,
	} {
		if _, got := parse(text); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}

// collector records the exported spans and returns err.
type collector struct {
	got []span
	err error
}

func (c *collector) send(_ context.Context, spans []span) error {
	c.got = append(c.got, spans...)
	return c.err
}

func note(step journal.Step, traceparent string) journal.Note {
	return journal.Note{
		Step: step, At: began.Add(7 * time.Second), Sent: began, Trace: traceparent, Message: "m-1", Sink: "search",
		Lane: "live", Doc: "content#a", Key: shard.OrderKey("e010,i015,-,00000000000000000,3991a560b96b86fb"), Flight: flight,
	}
}

// The trace of the sender shows the outcome of the event, and a link leads from there to the
// flight.
func TestWhatBecameOfAnEventIsASpanOfItsSendersTrace(t *testing.T) {
	t.Parallel()
	var c collector
	receive, index := &Tracer{export: c.send, function: "receive"}, &Tracer{export: c.send, function: "index"}
	held := note(journal.Held, sampled)
	held.Flight = ""
	receive.Note(held)
	receive.Note(journal.Note{Step: journal.Launched, Flight: flight, At: began.Add(time.Second)})
	if err := receive.Flush(t.Context(), began.Add(2*time.Second)); err != nil {
		t.Fatal(err)
	}
	if len(c.got) != 1 || c.got[0].Name != "lull receive" || len(c.got[0].Links) != 1 || c.got[0].Links[0] != (link{trace, parent}) {
		t.Fatalf("receive: got %+v, want one span of the function with a link to the sender's span", c.got)
	}
	launch := c.got[0]
	for _, n := range []journal.Note{
		note(journal.Claimed, sampled), note(journal.Committed, sampled), note(journal.DeadLettered, sampled),
		note(journal.Committed, ""), note(journal.Committed, strings.TrimSuffix(sampled, "1")+"0"),
	} {
		index.Note(n)
	}
	c.got = nil
	if err := index.Flush(t.Context(), began.Add(8*time.Second)); err != nil {
		t.Fatal(err)
	}
	if len(c.got) != 3 {
		t.Fatalf("index: got %+v, want one span of the function and one of each of the two events", c.got)
	}
	own, committed, dead := c.got[0], c.got[1], c.got[2]
	if own.Trace != launch.Trace || own.Parent != launch.ID || len(own.Links) != 1 {
		t.Errorf("index: got the function's span %+v, want a child of %+v with one link", own, launch)
	}
	if committed.Trace != trace || committed.Parent != parent || committed.Name != "lull committed" ||
		committed.Links[0] != (link{own.Trace, own.ID}) || committed.Start != nanos(began) || committed.Status != nil {
		t.Errorf("committed: got %+v", committed)
	}
	if dead.Status == nil || dead.Status.Code != statusError {
		t.Errorf("the span of a dead letter: got %+v, want the status error", dead)
	}
	c.got = nil
	if err := index.Flush(t.Context(), began); err != nil || c.got != nil {
		t.Errorf("the second Flush sent the spans %v and returned %v, want nothing sent", c.got, err)
	}
}

// The number of spans of an invocation is limited. The span of the function says how many spans
// were left out.
func TestSpansAreBounded(t *testing.T) {
	t.Parallel()
	var c collector
	tr := &Tracer{export: c.send, function: "index"}
	for range maxSpans + 100 {
		tr.Note(note(journal.Superseded, sampled))
	}
	if err := tr.Flush(t.Context(), began); err != nil || len(c.got) != maxSpans+1 {
		t.Fatalf("got %d spans, %v, want %d", len(c.got), err, maxSpans+1)
	}
	if a := c.got[0].Attributes; a[len(a)-1].Value.Int != "100" {
		t.Errorf("got the attributes %+v, want them to say that 100 spans are left out", a)
	}
}

// If a collector does not answer, no spans are sent to that collector for a minute.
func TestASilentCollectorCostsOneInvocationAMinute(t *testing.T) {
	t.Parallel()
	c := collector{err: errors.New("no answer")}
	tr := &Tracer{export: c.send, function: "index"}
	for _, tt := range []struct {
		after time.Duration
		asked bool
	}{{0, true}, {time.Second, false}, {59 * time.Second, false}, {time.Minute, true}} {
		c.got = nil
		tr.Note(note(journal.Committed, sampled))
		err := tr.Flush(t.Context(), began.Add(tt.after))
		if asked := c.got != nil; asked != tt.asked || (err != nil) != tt.asked {
			t.Errorf("after %s: the collector was asked: %t, error %v; want asked: %t", tt.after, asked, err, tt.asked)
		}
	}
}

// If an invocation is nearly over, a failed request does not mean that the collector is down.
func TestACollectorThatHadNoTimeIsAskedAgain(t *testing.T) {
	t.Parallel()
	c := collector{err: context.DeadlineExceeded}
	tr := &Tracer{export: c.send, function: "index"}
	late, cancel := context.WithTimeout(t.Context(), answerMargin)
	defer cancel()
	for _, ctx := range []context.Context{late, t.Context()} {
		c.got = nil
		tr.Note(note(journal.Committed, sampled))
		if err := tr.Flush(ctx, began); err == nil || c.got == nil {
			t.Errorf("got the spans %v, %v; want every Flush to ask the collector", c.got, err)
		}
	}
}

func TestWithoutAnEndpointNothingIsTraced(t *testing.T) {
	t.Parallel()
	tr := New("", "lull", "index")
	tr.Note(note(journal.Committed, sampled))
	if err := tr.Flush(t.Context(), began); err != nil || tr != nil {
		t.Errorf("got %v, %v", tr, err)
	}
}

// The spans are sent to the path /v1/traces of the collector, as the JSON of OTLP. If the collector
// does not answer with success, there is an error.
func TestTheCollectorGetsOTLP(t *testing.T) {
	t.Parallel()
	var path, kind string
	var got struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []attribute }
			ScopeSpans []struct{ Spans []map[string]any }
		}
	}
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, kind = r.URL.Path, r.Header.Get("Content-Type")
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &got); err != nil {
			t.Error(err)
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(server.Close)
	e := newExporter(server.URL+"/", "lull shop search")
	t.Cleanup(e.client.CloseIdleConnections)
	one := span{Trace: trace, ID: parent, Name: "n", Kind: kindConsumer, Start: nanos(began), End: nanos(began)}
	if err := e.send(t.Context(), []span{one}); err != nil {
		t.Fatal(err)
	}
	s := got.ResourceSpans[0].ScopeSpans[0].Spans[0]
	if path != "/v1/traces" || kind != "application/json" || s["traceId"] != trace || s["startTimeUnixNano"] != "1772366400000000000" ||
		got.ResourceSpans[0].Resource.Attributes[0].Value.String != "lull shop search" {
		t.Errorf("%s %s: got %v", path, kind, got)
	}
	code = http.StatusFound
	if err := e.send(t.Context(), []span{one}); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("got %v, want an error with the status 302", err)
	}
}

// BenchmarkSpans measures how long the spans of a turn with 100 traced documents take, without
// sending them.
func BenchmarkSpans(b *testing.B) {
	tr := &Tracer{function: "index", export: func(_ context.Context, spans []span) error {
		text, err := body("lull", spans)
		b.ReportMetric(float64(len(text))/100, "bytes/document")
		return err
	}}
	for b.Loop() {
		for range 100 {
			tr.Note(note(journal.Committed, sampled))
		}
		if err := tr.Flush(b.Context(), began); err != nil {
			b.Fatal(err)
		}
	}
}
