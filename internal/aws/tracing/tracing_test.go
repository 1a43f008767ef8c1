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

// collector takes what is exported.
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

// A reader of the sender's trace sees what became of the event, and from there the flight.
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
		t.Fatalf("receive: got %+v, want its own span, linked to the sender's", c.got)
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
		t.Fatalf("index: got %+v, want its own span and those of two events", c.got)
	}
	own, committed, dead := c.got[0], c.got[1], c.got[2]
	if own.Trace != launch.Trace || own.Parent != launch.ID || len(own.Links) != 1 {
		t.Errorf("index: got %+v, want a child of %+v with one link", own, launch)
	}
	if committed.Trace != trace || committed.Parent != parent || committed.Name != "lull committed" ||
		committed.Links[0] != (link{own.Trace, own.ID}) || committed.Start != nanos(began) || committed.Status != nil {
		t.Errorf("committed: got %+v", committed)
	}
	if dead.Status == nil || dead.Status.Code != statusError {
		t.Errorf("a dead letter: got %+v, want an error", dead)
	}
	c.got = nil
	if err := index.Flush(t.Context(), began); err != nil || c.got != nil {
		t.Errorf("the next invocation sends %v, %v again", c.got, err)
	}
}

// A batch of 10,000 traced messages is bounded, and says so.
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
		t.Errorf("got %+v, want it to say that 100 are left out", a)
	}
}

// A collector that does not answer is left alone for a minute.
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
			t.Errorf("after %s: asked %t, %v, want %t", tt.after, asked, err, tt.asked)
		}
	}
}

// An invocation that is nearly over says nothing about the collector.
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
			t.Errorf("got %v, %v, want the collector asked each time", c.got, err)
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

// Flush sends OTLP's JSON to the collector's path, and returns an error if the answer is not a
// success.
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
		t.Errorf("got %v, want what the collector answered", err)
	}
}

// BenchmarkSpans measures the spans of a turn with 100 traced documents, without sending them.
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
