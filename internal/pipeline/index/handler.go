// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"errors"
	"fmt"
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
// Any other error may be temporary.
type Payloads interface {
	Load(ctx context.Context, ref string) ([]byte, error)
}

// Fetcher loads the payload of an event whose source has the setting fetch. If the error is an
// *event.Invalid, a retry cannot help, or the document is Missing. A *source.Unavailable concerns
// the source and not this document. Any other error may be temporary.
type Fetcher interface {
	Fetch(ctx context.Context, source, ref string) ([]byte, error)
}

// Handler is index for one sink. All fields are required except Payloads, Fetcher, Enrichers,
// Reader and Parallel. A Handler keeps no state between turns.
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
	// Enrichers ask the enrichment services. Config says which collections have such a service.
	Enrichers map[shard.Collection]enrich.Caller
	Config    *config.Config
	Clock     clock.Clock
	Journal   journal.Journal
	NewToken  func() shard.Token // random, fresh at each call
	Jitter    func() float64     // in [0, 1)
	Parallel  fanout.Runner      // nil means goroutines
}

const (
	maxParallel = 32
	// maxLoadBytes bounds the bytes of message bodies that are loaded for one request. After that
	// many bytes, no other body is loaded. The bound is twice the number that receive loads for a
	// flight, because the objects may have grown since.
	maxLoadBytes = 64 << 20
	// sinkMargin is the time that remains after a sink call for COMMIT and DeleteMessage.
	sinkMargin = 2 * time.Second
	// leastWrite is the shortest time for which a request is worth starting.
	leastWrite = time.Second
	// holdMargin is the time between the moment when a flight gives its messages back and the end
	// of SQS's twelve hours.
	holdMargin = 15 * time.Minute
	// throttledTries is the longest time that the state machine retries while Lambda throttles.
	throttledTries = 2 * time.Minute
	// standardTurns is the number of turns that stay below the limit of 25,000 events for a
	// Standard execution.
	standardTurns = 2000
)

// Turn does one turn of a flight and returns the state for the next turn: Done, or the remaining
// entries and when to wake. After an error the result is unknown. The state machine then retries
// the turn only when the lease of a lost invocation has surely ended.
func (h *Handler) Turn(ctx context.Context, s flight.State) (flight.State, error) {
	// During a deploy, old code may get a newer state. Redelivery then recovers the flight (design
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
		// Rows would keep the times of this wrong clock as leases, fences and last writes.
		detail := "this clock is off by " + off.String()
		h.note(journal.Note{Step: journal.ClockOff, Flight: string(s.Flight), Detail: detail})
		return s, fmt.Errorf("turn of flight %s: %s, by the clock of the state machine", s.Flight, detail)
	}
	m, err := backoff.Get(ctx, h.Clock, func() (*flight.Manifest, error) { return h.Flights.Get(ctx, s.Flight) })
	switch {
	// another turn finished the flight, prune collected the manifest, or it was lost
	case errors.Is(err, flight.ErrNotFound):
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

// clockOff compares this clock with the clock of the state machine. It takes the time at which this
// turn was entered. An older state machine does not give that time, so clockOff then takes the
// start of the execution.
func (h *Handler) clockOff(now time.Time, s flight.State) time.Duration {
	switch {
	case s.Entered != 0:
		// A retried turn was entered before the tries that failed.
		retried := throttledTries + 2*(h.Config.Index.Timeout+h.Config.AmbiguousRetry(h.SinkName))
		return clock.Off(now, s.Entered.Time(), max(retried-clock.Trust, 0))
	case s.Started != 0:
		return clock.Off(now, s.Started.Time(), queue.MaxHold)
	}
	return 0
}

// finished returns the state of a flight that is done.
func finished(s flight.State) flight.State {
	s.Remaining, s.Done = flight.Remaining{}, true
	return s
}

func (h *Handler) note(n journal.Note) {
	n.At, n.Sink = h.Clock.Now(), h.SinkName
	h.Journal.Note(n)
}
