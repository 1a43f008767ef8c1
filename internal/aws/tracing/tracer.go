// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
)

// maxSpans is how many events of one invocation get a span at most, and how many links the span of
// the invocation has at most. A batch may have 10,000 messages.
const maxSpans = 512

// The numbers of a kind of span and of the status error in OTLP.
const (
	kindConsumer = 5
	statusError  = 2
)

// ends lists the steps after which an event is done: it was written, or lull will never write it.
var ends = map[journal.Step]bool{
	journal.Skipped: true, journal.Stale: true, journal.Duplicate: true, journal.AlreadyDead: true,
	journal.Scheduled: true, journal.Superseded: true, journal.Committed: true, journal.Kept: true,
	journal.DeadLettered: true, journal.Rejected: true, journal.Parked: true,
}

// failures lists the steps of ends that are failures. The spans of these steps have the status
// error.
var failures = map[journal.Step]bool{journal.DeadLettered: true, journal.Rejected: true, journal.Parked: true}

// Tracer converts the notes of an invocation into spans, for one invocation at a time. A nil Tracer
// does nothing. A Tracer is safe for concurrent use.
type Tracer struct {
	export   func(ctx context.Context, spans []span) error
	function string

	mu      sync.Mutex
	flight  string
	events  []journal.Note
	began   time.Time
	dropped int
	silent  time.Time // no spans are sent before this time, because the collector did not answer
}

// New returns the tracer of a function (receive or index). New sends spans to the collector at an
// endpoint, such as http://localhost:4318, under the name service. New returns nil if the endpoint
// is empty.
func New(endpoint, service, function string) *Tracer {
	if endpoint == "" {
		return nil
	}
	return &Tracer{export: newExporter(endpoint, service).send, function: function}
}

// Note keeps a note if it becomes a span or a link.
func (t *Tracer) Note(n journal.Note) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.began.IsZero() {
		t.began = n.At
	}
	if n.Flight != "" {
		t.flight = n.Flight
	}
	if _, sampled := parse(n.Trace); !sampled || !ends[n.Step] && n.Step != journal.Held {
		return
	}
	if len(t.events) >= maxSpans {
		t.dropped++
		return
	}
	t.events = append(t.events, n)
}

// quietFor is how long lull sends no spans to a collector that did not answer.
const quietFor = time.Minute

// Flush sends spans for the notes since the last Flush. Flush drops the notes even if sending
// fails. Flush takes at most half a second, and ends half a second before the deadline of ctx.
func (t *Tracer) Flush(ctx context.Context, now time.Time) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	spans := t.spans(now)
	t.flight, t.events, t.began, t.dropped = "", nil, time.Time{}, 0
	silent := now.Before(t.silent)
	t.mu.Unlock()
	if len(spans) == 0 || silent {
		return nil
	}
	end, ends := ctx.Deadline()
	hurried := ends && time.Until(end) < exportTimeout+answerMargin
	err := t.export(ctx, spans)
	if err != nil && !hurried { // if the time was shorter than usual, the collector may be healthy
		t.mu.Lock()
		t.silent = now.Add(quietFor)
		t.mu.Unlock()
	}
	return err
}

// spans returns the span of the invocation, and a span for each event that is done.
func (t *Tracer) spans(now time.Time) []span {
	if len(t.events) == 0 {
		return nil
	}
	own := span{Name: "lull " + t.function, Kind: kindConsumer, Start: nanos(t.began), End: nanos(now)}
	switch launch := launchOf(t.flight); {
	case t.flight == "": // receive launched no flight
		own.Trace, own.ID = randomHex(16), randomHex(8)
	case t.function == "receive":
		own.Trace, own.ID = launch.trace, launch.span
	default:
		own.Trace, own.ID, own.Parent = launch.trace, randomHex(8), launch.span
	}
	if t.flight != "" {
		own.add("lull.flight", t.flight)
	}
	if t.dropped > 0 {
		own.addInt("lull.events_without_span", t.dropped)
	}
	all, linked := []span{own}, make(map[spanContext]bool)
	for i := range t.events {
		n := &t.events[i]
		from, _ := parse(n.Trace) // the trace is valid, because Note has checked it
		if !linked[from] {
			linked[from] = true
			all[0].Links = append(all[0].Links, link{from.trace, from.span})
		}
		if ends[n.Step] {
			all = append(all, outcome(n, from, own))
		}
	}
	return all
}

// outcome returns the span of an event in the trace of the sender.
func outcome(n *journal.Note, from spanContext, own span) span {
	s := span{
		Trace: from.trace, ID: randomHex(8), Parent: from.span, Name: "lull " + string(n.Step), Kind: kindConsumer,
		Start: nanos(n.Sent), End: nanos(n.At), Links: []link{{own.Trace, own.ID}},
	}
	if n.Sent.IsZero() || n.Sent.After(n.At) { // clocks differ
		s.Start = s.End
	}
	s.add("messaging.system", "aws_sqs")
	s.add("messaging.message.id", n.Message)
	s.add("lull.document", string(n.Doc))
	s.add("lull.version", n.Key.VersionText())
	s.add("lull.sink", n.Sink)
	s.add("lull.lane", n.Lane)
	if failures[n.Step] {
		s.Status = &status{Code: statusError}
	}
	return s
}
