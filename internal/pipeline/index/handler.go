package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/enrich"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/rows"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Source decodes messages again and makes the document of an event.
type Source interface {
	DecodeContext(ctx context.Context, m queue.Message) []event.Result
	Document(m queue.Message, e event.Event) ([]byte, error)
}

// Payloads loads a payload by reference. An error that is an *event.Invalid is for good; any other
// may pass.
type Payloads interface {
	Load(ctx context.Context, ref string) ([]byte, error)
}

// Fetcher loads what a source's setting fetch names. An error that is an *event.Invalid is for good
// or says that the document is Missing; one that is a *source.Unavailable is about the source,
// whichever document was asked for; any other may pass.
type Fetcher interface {
	Fetch(ctx context.Context, source, ref string) ([]byte, error)
}

// Handler is index for one sink. All fields are required except Payloads, Fetcher, Enrichers,
// Reader and Parallel.
// Nothing survives in it between turns.
type Handler struct {
	Shards   shard.Store
	Flights  flight.Store
	Launcher flight.Launcher
	Queues   map[flight.Lane]queue.Queue
	Dead     queue.Queue
	Sink     sink.Sink
	SinkName string
	Reader   sink.Reader // for samples; nil for a sink that cannot be read
	Sources  Source
	Payloads Payloads
	Fetcher  Fetcher // nil where no source has fetch
	// Enrichers ask the services of the collections that have one in Config.
	Enrichers map[shard.Collection]enrich.Caller
	Config    *config.Config
	Clock     clock.Clock
	Journal   journal.Journal
	NewToken  func() shard.Token // random, fresh at each call
	Jitter    func() float64     // in [0, 1)
	Parallel  fanout.Runner      // nil for goroutines
}

const (
	maxParallel = 32
	// maxLoadBytes is after how many bytes of messages no other body is loaded for one request: twice
	// what receive loads for a flight. The objects may have grown since.
	maxLoadBytes = 64 << 20
	// sinkMargin is what stays of an invocation after a sink call: for COMMIT and DeleteMessage.
	sinkMargin = 2 * time.Second
	// leastWrite is the shortest time for which a request is worth starting.
	leastWrite = time.Second
	// holdMargin is how long before SQS's twelve hours a flight gives its messages back.
	holdMargin = 15 * time.Minute
	// throttledTries is how long the state machine tries at most while Lambda throttles, and starts
	// what is tried again.
	throttledTries = 2 * time.Minute
	// standardTurns is how many turns of a Standard execution stay below its 25,000 events.
	standardTurns = 2000
)

// Turn does one turn of a flight and returns the state for the next: Done, or what is left and when
// to wake. An error means that nothing is known: the state machine tries the turn again after the
// lease of a lost invocation can have ended.
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
	t := &turn{
		h: h, start: h.Clock.Now(), state: s, left: s.Remaining.Clone(), verdicts: map[shard.Collection]verdict{},
		enrichers: map[shard.Collection]*enricher{}, origins: map[string]*origin{},
		generations: map[shard.Collection]string{}, sink: service{kind: "sink", name: h.SinkName},
	}
	if off := h.clockOff(t.start, s); off != 0 {
		// Whatever this clock says would stay in rows, as leases, fences and last writes.
		detail := "this clock is off by " + off.String()
		h.note(journal.Note{Step: journal.ClockOff, Flight: string(s.Flight), Detail: detail})
		return s, fmt.Errorf("turn of flight %s: %s, by the state machine's", s.Flight, detail)
	}
	t.hard = t.start.Add(h.Config.Index.Timeout)
	t.behind = max(s.Entered.Sub(shard.MicrosOf(t.start)), 0)
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
	t.load(m)
	if s.Outage {
		return t.outage(ctx), nil
	}
	return t.run(ctx), nil
}

// clockOff compares this clock with the state machine's: with when it came to this turn, or else,
// of an older definition, with when the execution began.
func (h *Handler) clockOff(now time.Time, s flight.State) time.Duration {
	switch {
	case s.Entered != 0:
		// A turn that is tried again came to its state before the tries that were lost.
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
	h           *Handler
	start       time.Time
	hard        time.Time     // when the platform kills this invocation
	behind      time.Duration // how far our clock is behind the state machine's, at least
	state       flight.State
	left        flight.Remaining
	manifest    *flight.Manifest
	records     []recordState
	turns       []shard.Micros   // see flight.Manifest.Turns; nil until it is asked for
	decoded     map[int]*decoded // by record
	docs        []*document
	wake        shard.Micros // the earliest reason to look again
	sink        service
	rebuild     shard.Row // the sink's row as this turn first read it: what is rebuilt stays so until it ends
	unread      bool      // the sink's row could not be read
	tripped     bool
	origins     map[string]*origin // where payloads by reference come from, see fetch.go
	cautious    bool               // documents of this flight could not be loaded when they were tried last
	slot        shard.Micros       // the slot that this turn uses, see budget.go
	slotEnd     shard.Micros
	unpaid      bool                         // it is nobody's: the sink was idle
	sent        int                          // documents sent in it
	took        time.Duration                // how long the last request took
	verdicts    map[shard.Collection]verdict // of the collections that were written in this turn
	generations map[shard.Collection]string  // of the collections that may be kept: see keep.go
	asked       bool                         // the turn has had its question: see doubt
	enrichers   map[shard.Collection]*enricher
}

// run is the order of a turn. Whatever fails inside keeps messages; nothing here fails the turn.
func (t *turn) run(ctx context.Context) flight.State {
	if t.h.Clock.Now().After(t.manifest.Received.Add(queue.MaxHold - holdMargin)) {
		return t.twelveHours(ctx)
	}
	// Step 2 goes first here: the messages stay invisible for this turn and the next, whatever this
	// turn does.
	t.extend(ctx, shard.MicrosOf(t.start.Add(2*t.h.Config.Index.Timeout)))
	t.readHealth(ctx)
	t.awaitSlot(ctx)
	claims := t.bury(ctx, t.decide(ctx))
	t.cautious = t.tried()
	// What the rows call done needs no write, so it does not wait for the sink.
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
				d.body = nil // a flight's payloads may be more than a function has room for
			}
			group = slices.Concat(rest, next, later)
		}
		unwritten = append(unwritten, group...)
	}
	if t.slot != 0 && !t.unpaid {
		t.yield(ctx, t.slotEnd.Sub(t.slot)-shard.Cost(float64(t.sent), t.pace()))
	}
	t.postpone(ctx, unwritten)
	// After all deletions, because giving a message back takes its other events out of the flight.
	t.giveBack(ctx)
	return t.finish(ctx)
}

// mayWrite reports whether a round still fits: the circuit is open to us, the budget has room, and
// there is time for a request and its commit. A sink that throttles may make requests wait, and one
// that is cut short would count as one that nobody answered.
func (t *turn) mayWrite() bool {
	left, pace := t.remaining()-sinkMargin, t.pace()
	return !t.tripped && left > leastWrite && (pace == 0 || t.allowance(pace) > 0 && left > t.took*3/2)
}

func (t *turn) remaining() time.Duration { return t.hard.Sub(t.h.Clock.Now()) }

func (t *turn) rows() rows.Table { return rows.Table{Store: t.h.Shards, Clock: t.h.Clock} }

func (t *turn) now() shard.Micros { return shard.MicrosOf(t.h.Clock.Now()) }

// again asks for another turn at the given time. The earliest time wins: a wake for one document
// serves the whole flight.
func (t *turn) again(at shard.Micros) {
	if t.wake == 0 || at < t.wake {
		t.wake = at
	}
}

func (h *Handler) note(n journal.Note) {
	n.At, n.Sink = h.Clock.Now(), h.SinkName
	h.Journal.Note(n)
}

// lost notes a call that failed, and what class of failure it was. It reports whether the call
// failed.
func (t *turn) lost(call string, doc shard.DocID, err error) bool {
	if err != nil {
		t.note(journal.Note{Step: journal.CallFailed, Doc: doc, Detail: call + ": " + backoff.Class(err)})
	}
	return err != nil
}

func (t *turn) note(n journal.Note) {
	n.Flight, n.Lane = string(t.state.Flight), string(t.manifest.Lane)
	t.h.note(n)
}
