// SPDX-License-Identifier: Apache-2.0

package stops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/alarms"
	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/pipeline/receive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/simulation/sim"
	"github.com/lullhq/lull/sink"
)

// stopAt is when a healthy stack stops. lasting is how long the test observes the stack.
const (
	stopAt  = 20 * time.Minute
	lasting = 50 * time.Minute
)

// breaks lists what is broken after the stop.
type breaks struct {
	fails     func(function string, op fault.Op) error
	fates     map[string]sim.Fate
	write     func(now time.Time, op sink.Op) (sink.Outcome, bool)
	unpolled  []string // the queues that are not polled, by the last part of their names
	undeleted []string
	unlogged  string // the function whose logs and metrics are missing
	payloads  bool   // whether payloads by reference cannot be loaded
	feed      bool   // whether the pipe of the commit feed cannot report a commit
	off       string // the function whose clock is wrong
	by        time.Duration
	from      time.Duration // the time of the stop, if the test does not use stopAt
	until     time.Duration // 0 for ever
}

// stack is a simulated stack with CloudWatch.
type stack struct {
	cloud
	breaks
	now      func() time.Time
	cfg      *config.Config
	sink     alarms.Sink
	counters map[int64]*metrics.Counters
	wrote    int // number of versions committed after the stop
}

var _ sim.Monitor = (*stack)(nil)

func newStack(t testing.TB, o sim.Options, b breaks) (*stack, *sim.World) {
	t.Helper()
	versions := true
	cfg := config.Default()
	cfg.Sinks = map[string]config.Sink{"search": {Kind: "memory", Versions: &versions}}
	cfg.Payload.Allow = []config.BucketPrefix{{Bucket: "open"}}
	cfg.Archive.Keep = 14 * 24 * time.Hour
	cfg.CommitFeed = true
	cfg.Complete()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	s := &stack{
		breaks: b, cfg: &cfg, counters: map[int64]*metrics.Counters{},
		sink: alarms.Sink{Config: &cfg, Name: "search", Machines: []string{"express"}},
	}
	o.Config, o.Seed, o.Monitor = &cfg, 7, s
	if o.Faults == "" {
		o.Faults = sim.NoFaults
	}
	o.Hooks = sim.Hooks{
		Receive: func(h *receive.Handler) { h.Clock = s.wrong("receive", h.Clock) },
		Prune:   func(p *prune.Pruner) { p.Clock = s.wrong("prune", p.Clock) },
		Index: func(h *index.Handler) {
			h.Clock = s.wrong("index", h.Clock)
			if s.payloads && s.stopped() {
				h.Payloads = unloadable{}
			}
		},
	}
	w, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.now = w.Now
	return s, w
}

func (s *stack) stopped() bool {
	from := s.from
	if from == 0 {
		from = stopAt
	}
	at := s.now().Sub(sim.Begin())
	return at >= from && (s.until == 0 || at < s.until)
}

// unloadable is a bucket that the role may not read.
type unloadable struct{}

func (unloadable) Load(context.Context, string) ([]byte, error) { return nil, usecasetest.Denied }

// wrong returns a clock that is wrong after the stop.
func (s *stack) wrong(function string, c clock.Clock) clock.Clock {
	if s.off != function || !s.stopped() {
		return c
	}
	return ahead{c, s.by}
}

type ahead struct {
	clock.Clock
	by time.Duration
}

func (a ahead) Now() time.Time { return a.Clock.Now().Add(a.by) }

func (a ahead) Jitter() float64 {
	if c, ok := a.Clock.(interface{ Jitter() float64 }); ok {
		return c.Jitter()
	}
	return 0.5
}

func (s *stack) Call(function string, op fault.Op) error {
	if s.fails == nil || !s.stopped() {
		return nil
	}
	return s.fails(function, op)
}

func (s *stack) Fate(function string) sim.Fate {
	fate := sim.Runs
	if s.stopped() {
		fate = s.fates[function]
	}
	if fate == sim.Throttled {
		s.put(s.now(), s.lambda(function, "Throttles"), 1)
	}
	return fate
}

func (s *stack) Write(op sink.Op) (sink.Outcome, bool) {
	if s.write == nil || !s.stopped() {
		return sink.Outcome{}, false
	}
	return s.write(s.now(), op)
}

func (s *stack) Polls(q string) bool   { return !s.stopped() || !slices.Contains(s.unpolled, q) }
func (s *stack) Deletes(q string) bool { return !s.stopped() || !slices.Contains(s.undeleted, q) }

func (s *stack) Note(id int64, n journal.Note) {
	if s.counters[id] == nil {
		s.counters[id] = metrics.New(&s.cloud, metrics.Base{Stack: s.cfg.Stack, Sink: "search"})
	}
	s.counters[id].Note(n)
	if n.Step == journal.Committed && s.now().Sub(sim.Begin()) >= stopAt {
		s.wrote++
	}
	// ExecutionFailed is "the number of executions of a pipe that failed"
	// (eventbridge/latest/userguide, "Monitoring Amazon EventBridge"). While the commit feed is
	// stopped, the pipe fails at least once for each commit.
	if n.Step == journal.Committed && s.feed && s.stopped() {
		s.put(s.now(), alarms.OnPipe("ExecutionFailed", names.Of(s.cfg).Feed()), 1)
	}
}

func (s *stack) lambda(function, metric string) alarms.Metric {
	return s.sink.Function(names.Function(function), metric)
}

// Ended counts the metrics that Lambda counts: "the timestamp on an error metric reflects when the
// function was invoked, not when the error occurred"
// (lambda/latest/dg/monitoring-metrics-types.html).
func (s *stack) Ended(function string, id int64, began time.Time, err error) {
	s.put(began, s.lambda(function, "Invocations"), 1)
	refuses := s.stopped() && s.fates[function] == sim.Refuses
	logged := !s.stopped() || s.unlogged != function
	if refuses && logged {
		s.put(began, s.sink.Own(metrics.ConfigurationErrors), 1)
	}
	// receive and dlq answer a batch that they refuse, so that Lambda counts no error.
	if err != nil && !(refuses && (function == "receive" || function == "dlq")) {
		s.put(began, s.lambda(function, "Errors"), 1)
	}
	counters := s.counters[id]
	delete(s.counters, id)
	if id != 0 && counters != nil && logged && !errors.Is(err, sim.ErrKilled) {
		counters.Flush(s.now(), "")
	}
}

func (s *stack) Flight(end sim.FlightEnd) {
	name := [...]string{"ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"}[end]
	s.put(s.now(), s.sink.Executions(name)[0], 1)
}

// look stores SQS's metrics, once a minute.
func (s *stack) look(w *sim.World, now time.Time) {
	for _, q := range w.Queues() {
		name := s.cfg.Stack + "-" + q.Name
		if q.Holds {
			s.put(now.Add(-time.Second), alarms.OnQueue("ApproximateAgeOfOldestMessage", name), q.Oldest.Seconds())
		}
		s.put(
			now.Add(-time.Second),
			alarms.OnQueue("ApproximateNumberOfMessagesNotVisible", name),
			float64(q.InFlight),
		)
	}
}

// alarms returns all alarms of the stack.
func (s *stack) alarms() []alarms.Alarm {
	return slices.Concat(s.sink.Alarms(), alarms.OfStack(s.cfg), alarms.OfPipe(names.Of(s.cfg).Feed(), 0))
}

// ring is an alarm that went off, and how long after the stop.
type ring struct {
	kind  string
	after time.Duration
}

// run runs the stack. run returns the alarms that went off after the stop and were not on before
// the stop.
func (s *stack) run(t testing.TB, w *sim.World, lasting time.Duration, more int) []ring {
	t.Helper()
	var rings []ring
	on := map[string]bool{}
	for _, v := range w.Observe(lasting, func(now time.Time) {
		s.look(w, now)
		for _, a := range s.alarms() {
			if on[a.Kind] || !s.goesOff(a, now, more) {
				continue
			}
			// An alarm that treats missing data as bad goes off in its first period, because it has
			// no data yet.
			if on[a.Kind] = true; now.Sub(sim.Begin()) > stopAt || more > 0 && now.Sub(sim.Begin()) > a.Period {
				rings = append(rings, ring{a.Kind, now.Sub(sim.Begin()) - stopAt})
			}
		}
	}) {
		t.Errorf("%v", v)
	}
	return rings
}

// traffic is the kind of messages that the upstream sends, one each minute.
type traffic string

const (
	live       traffic = "" // new versions of a few documents
	twice      traffic = "each event comes again after two minutes"
	bulk       traffic = "resyncs"
	junk       traffic = "messages that are not events"
	rejected   traffic = "documents that the sink rejects"
	references traffic = "payloads by reference"
	soon       traffic = "events that wait for ten minutes"
	later      traffic = "events that wait for twenty minutes"
	moved      traffic = "messages that SNS could not deliver"
	none       traffic = "nothing"
)

// body returns the body of an event.
func body(doc string, version int, extra string) string {
	return fmt.Sprintf(
		`{"type":"doc.changed","subject":%q,"sequence":"%d"%s,"data":{"title":"t"}}`,
		doc,
		version,
		extra,
	)
}

// sends returns the upstream that sends this kind of traffic.
func (k traffic) sends(lasting time.Duration) sim.Upstream {
	up := sim.Upstream{Calm: lasting}
	send := func(at time.Duration, b string) {
		up.Arrivals = append(up.Arrivals, sim.Arrival{At: at, Message: queue.Outgoing{Body: b}})
	}
	for n := 1; k != none && time.Duration(n)*time.Minute < lasting; n++ {
		at := time.Duration(n)*time.Minute + 17*time.Second
		event := body(fmt.Sprintf("doc-%d", n%5), n, "")
		send(at, event)
		due := func(wait time.Duration) string {
			return fmt.Sprintf(`,"notbefore":%q`, sim.Begin().Add(at+wait).Format(time.RFC3339))
		}
		switch k {
		case twice:
			send(at+2*time.Minute, event)
		case bulk:
			send(at, body(fmt.Sprintf("bulk-%d", n), n, `,"mode":"resync","resyncrun":"01JD2V6Y5T3KQ8Z4M7N9P0R1S2"`))
		case junk:
			send(at, fmt.Sprintf("not json %d", n))
		case rejected:
			send(at, body(fmt.Sprintf("bad-%d", n), n, ""))
		case references:
			doc := fmt.Sprintf("ref-%d", n)
			up.Objects = append(up.Objects, sim.Object{At: 0, Doc: doc, Version: n})
			send(
				at,
				fmt.Sprintf(
					`{"type":"doc.touched","subject":%q,"sequence":"%d","dataref":"s3://open/%s"}`,
					doc,
					n,
					doc,
				),
			)
		case soon:
			send(at, body(fmt.Sprintf("soon-%d", n), n, due(10*time.Minute)))
		case later:
			send(at, body(fmt.Sprintf("later-%d", n), n, due(20*time.Minute)))
		}
	}
	sim.InOrder(up.Arrivals)
	return up
}

var errAway = errors.New("no answer")
