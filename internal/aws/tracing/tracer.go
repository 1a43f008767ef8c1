package tracing

import (
	"context"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
)

// maxSpans is how many events of one invocation get a span, and how many links its own span has. A
// batch may have 10,000 messages.
const maxSpans = 512

// The kinds of spans and the code of an error, as OTLP numbers them.
const (
	kindConsumer = 5
	statusError  = 2
)

// ends are the steps that end an event: it is complete, or lull will never write it.
var ends = map[journal.Step]bool{
	journal.Skipped: true, journal.Stale: true, journal.Duplicate: true, journal.AlreadyDead: true,
	journal.Scheduled: true, journal.Superseded: true, journal.Committed: true, journal.Kept: true,
	journal.DeadLettered: true, journal.Rejected: true, journal.Parked: true,
}

// bad are the ends that are failures. Their spans have the status error.
var bad = map[journal.Step]bool{journal.DeadLettered: true, journal.Rejected: true, journal.Parked: true}

// Tracer makes spans of the notes of one invocation at a time. A nil Tracer does nothing. It is
// safe for concurrent use.
type Tracer struct {
	export   func(ctx context.Context, spans []span) error
	function string

	mu      sync.Mutex
	flight  string
	events  []journal.Note
	began   time.Time
	dropped int
	silent  time.Time // until then nothing is sent: the collector did not answer
}

// New returns the tracer of a function (receive, index) that sends to the collector at an endpoint,
// such as http://localhost:4318, as that service. It is nil if the endpoint is empty.
func New(endpoint, service, function string) *Tracer {
	if endpoint == "" {
		return nil
	}
	return &Tracer{export: newExporter(endpoint, service).send, function: function}
}

// Note keeps the note if it becomes a span or a link.
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

// quietFor is how long lull sends nothing to a collector that did not answer.
const quietFor = time.Minute

// Flush sends the notes since the last Flush, and drops them even if that fails. It takes half a
// second at most, and nothing of ctx's last half second.
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
	if err != nil && !hurried { // if the time was too short, the collector may be healthy
		t.mu.Lock()
		t.silent = now.Add(quietFor)
		t.mu.Unlock()
	}
	return err
}

// spans are the invocation's span and one span for each event that ended.
func (t *Tracer) spans(now time.Time) []span {
	if len(t.events) == 0 {
		return nil
	}
	own := span{Name: "lull " + t.function, Kind: kindConsumer, Start: nanos(t.began), End: nanos(now)}
	switch launch := launchOf(t.flight); {
	case t.flight == "": // receive launched none
		own.Trace, own.ID = random(16), random(8)
	case t.function == "receive":
		own.Trace, own.ID = launch.trace, launch.span
	default:
		own.Trace, own.ID, own.Parent = launch.trace, random(8), launch.span
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
		from, _ := parse(n.Trace) // as Note found it
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

// outcome is the span of an event in its sender's trace.
func outcome(n *journal.Note, from spanContext, own span) span {
	s := span{
		Trace: from.trace, ID: random(8), Parent: from.span, Name: "lull " + string(n.Step), Kind: kindConsumer,
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
	if bad[n.Step] {
		s.Status = &status{Code: statusError}
	}
	return s
}
