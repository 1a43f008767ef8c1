package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Source decodes messages again and builds the document of an event.
type Source interface {
	DecodeContext(ctx context.Context, m queue.Message) []event.Result
	Document(m queue.Message, e event.Event) ([]byte, error)
}

// Payloads loads a payload by reference. If the error is an *event.Invalid, a retry cannot help.
// Any other error may pass.
type Payloads interface {
	Load(ctx context.Context, ref string) ([]byte, error)
}

// Fetcher loads the payload of an event whose source has the setting fetch. If the error is an
// *event.Invalid, a retry cannot help, or the document is Missing. A *source.Unavailable is
// about the source and not about this document. Any other error may pass.
type Fetcher interface {
	Fetch(ctx context.Context, source, ref string) ([]byte, error)
}

// Handler is index for one sink. All fields are required except Payloads, Fetcher, Enrichers,
// Reader and Parallel. It keeps no state between turns.
type Handler struct {
	Shards   shard.Store
	Flights  flight.Store
	Launcher flight.Launcher
	Queues   map[flight.Lane]queue.Queue
	Dead     queue.Queue
	Sink     sink.Sink
	SinkName string
	Reader   sink.Reader // for samples; nil if the sink cannot be read
	Sources  Source
	Payloads Payloads
	Fetcher  Fetcher // nil if no source has the setting fetch
	// Enrichers ask the services of the collections that have one in Config.
	Enrichers map[shard.Collection]enrich.Caller
	Config    *config.Config
	Clock     clock.Clock
	Journal   journal.Journal
	NewToken  func() shard.Token // random, fresh at each call
	Jitter    func() float64     // in [0, 1)
	Parallel  fanout.Runner      // nil: goroutines
}

const (
	maxParallel = 32
	// maxLoadBytes bounds the message bodies that are loaded for one request: after so many
	// bytes no other is loaded. It is twice what receive loads for a flight, because the objects
	// may have grown since.
	maxLoadBytes = 64 << 20
	// sinkMargin is the time that a sink call leaves for COMMIT and DeleteMessage.
	sinkMargin = 2 * time.Second
	// leastWrite is the shortest time for which a request is worth starting.
	leastWrite = time.Second
	// holdMargin is how long before the end of SQS's twelve hours a flight gives its messages
	// back.
	holdMargin = 15 * time.Minute
	// throttledTries is how long the state machine retries at most while Lambda throttles.
	throttledTries = 2 * time.Minute
	// standardTurns is how many turns stay below the 25,000 events of a Standard execution.
	standardTurns = 2000
)

// Turn does one turn of a flight and returns the state for the next one: Done, or the remaining
// entries and when to wake. After an error the result is unknown. The state machine then retries
// the turn after the lease of a lost invocation can have ended.
func (h *Handler) Turn(ctx context.Context, s flight.State) (flight.State, error) {
	// During a deploy, old code may get a newer state. Redelivery recovers the flight (design
	// section 7).
	if s.Schema > flight.SchemaVersion {
		h.note(journal.Note{Step: journal.Schema, Flight: string(s.Flight), Detail: "state"})
		return finished(s), nil
	}
	if len(s.Sample) > 0 {
		return h.sample(ctx, s), nil
	}
	start := h.Clock.Now()
	if off := h.clockOff(start, s); off != 0 {
		// Rows would keep the times of this clock, as leases, fences and last writes.
		detail := "this clock is off by " + off.String()
		h.note(journal.Note{Step: journal.ClockOff, Flight: string(s.Flight), Detail: detail})
		return s, fmt.Errorf("turn of flight %s: %s, by the state machine's", s.Flight, detail)
	}
	m, err := backoff.Get(ctx, h.Clock, func() (*flight.Manifest, error) { return h.Flights.Get(ctx, s.Flight) })
	switch {
	case errors.Is(err, flight.ErrNotFound): // finished by another turn, collected, or lost
		if !s.Remaining.Empty() {
			h.note(journal.Note{Step: journal.FlightLost, Flight: string(s.Flight), Count: s.Remaining.Count()})
		}
		return finished(s), nil
	case errors.Is(err, flight.ErrSchema):
		h.note(journal.Note{Step: journal.Schema, Flight: string(s.Flight), Detail: "manifest"})
		return finished(s), nil
	case err != nil:
		return s, fmt.Errorf("get manifest of flight %s: %w", s.Flight, err)
	}
	v := &invocation{
		config: h.Config, sinkName: h.SinkName, clock: h.Clock, journal: h.Journal, shards: h.Shards, jitter: h.Jitter,
		parallel: h.Parallel, start: start, hard: start.Add(h.Config.Index.Timeout), lane: m.Lane, state: s,
	}
	t := h.turn(load(v, m))
	if s.Outage {
		return t.outage(ctx), nil
	}
	return t.run(ctx), nil
}

// clockOff compares this clock with the state machine's. It takes the time at which this turn
// was entered. If an older definition does not give that time, it takes the start of the
// execution.
func (h *Handler) clockOff(now time.Time, s flight.State) time.Duration {
	switch {
	case s.Entered != 0:
		// A retried turn was entered before the tries that were lost.
		retried := throttledTries + 2*(h.Config.Index.Timeout+h.Config.AmbiguousRetry(h.SinkName))
		return clock.Off(now, s.Entered.Time(), max(retried-clock.Trust, 0))
	case s.Started != 0:
		return clock.Off(now, s.Started.Time(), queue.MaxHold)
	}
	return 0
}

func finished(s flight.State) flight.State {
	s.Remaining, s.Done = flight.Remaining{}, true
	return s
}

// turn is one invocation.
type turn struct {
	*invocation
	*holding
	*engine
	sink *health
	*budget
	*messages
	h           *Handler
	behind      time.Duration                // how far our clock is behind the state machine's, at least
	decoded     map[int]*decoded             // by record
	origins     map[string]*origin           // by the setting fetch of a reference, see fetch.go
	cautious    bool                         // the last try to load a document of this flight failed
	verdicts    map[shard.Collection]verdict // of the collections written in this turn, see doubt.go
	generations map[shard.Collection]string  // of the collections with keep, see keep.go
	asked       bool                         // the turn has sent its question, see doubt.go
	enrichers   map[shard.Collection]*enricher
}

func (h *Handler) turn(f *holding) *turn {
	e := &engine{f.invocation, h.Sink}
	hl := &health{service: service{invocation: f.invocation, kind: "sink", name: h.SinkName}, engine: e}
	return &turn{
		invocation: f.invocation, engine: e, sink: hl, budget: &budget{holding: f, sink: hl},
		messages: &messages{holding: f, queue: h.Queues[f.lane]},
		holding:  f, h: h, behind: max(f.state.Entered.Sub(shard.MicrosOf(f.start)), 0), decoded: map[int]*decoded{},
		verdicts: map[shard.Collection]verdict{}, enrichers: map[shard.Collection]*enricher{},
		origins: map[string]*origin{}, generations: map[shard.Collection]string{},
	}
}

// run is the order of a turn. A failure inside keeps the messages it concerns; none fails the
// turn.
func (t *turn) run(ctx context.Context) flight.State {
	if t.clock.Now().After(t.manifest.Received.Add(queue.MaxHold - holdMargin)) {
		return t.twelveHours(ctx)
	}
	// Step 2 comes first here: the messages stay invisible for this turn and the next, whatever
	// happens in this turn.
	t.extend(ctx, shard.MicrosOf(t.start.Add(2*t.config.Index.Timeout)))
	t.sink.read(ctx)
	t.awaitSlot(ctx)
	claims := t.bury(ctx, t.decide(ctx))
	t.cautious = t.tried()
	// Messages that are done by their rows need no write, so they do not wait for the sink.
	t.deleteDone(ctx)
	var unwritten []*document
	for _, group := range t.rounds(t.pay(ctx, claims)) {
		for len(group) > 0 && t.mayWrite() {
			part, later := t.portion(ctx, group)
			ready, rest := t.prepare(ctx, part)
			now, next := t.enrichable(ctx, t.keep(ctx, ready))
			t.write(ctx, t.enrich(ctx, t.unchanged(ctx, t.fetch(ctx, t.claim(ctx, now)))))
			t.deleteDone(ctx)
			if len(rest) == len(part) {
				break // no time to load anything
			}
			for _, d := range ready {
				d.body = nil // all payloads of a flight may not fit into a function's memory
			}
			group = slices.Concat(rest, next, later)
		}
		unwritten = append(unwritten, group...)
	}
	if t.slot != 0 && !t.unpaid {
		t.yield(ctx, t.slotEnd.Sub(t.slot)-shard.Cost(float64(t.sent), t.sink.pace()))
	}
	t.postpone(ctx, unwritten)
	// After all deletions, because giving a message back removes its other events from the
	// flight.
	t.giveBack(ctx)
	return t.finish(ctx)
}

func (h *Handler) note(n journal.Note) {
	n.At, n.Sink = h.Clock.Now(), h.SinkName
	h.Journal.Note(n)
}
