// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// parts holds what the stages of a turn need, without a turn or a Handler.
type parts struct {
	*usecasetest.Rig
	f          *holding
	live, dead *memory.Queue
	store      *memorysink.Sink
	flights    *memory.Flights
}

// flying makes a flight of the given events. Each event is pending in its row; the events have the
// given order.
func flying(t *testing.T, change func(*config.Config), bodies ...string) *parts {
	t.Helper()
	versions := true
	p := &parts{Rig: usecasetest.Open(t, func(c *config.Config) {
		c.Sinks = map[string]config.Sink{"search": {Kind: "memory", Versions: &versions}}
		c.DefaultSource = "native"
		if change != nil {
			change(c)
		}
	})}
	p.live, p.dead = p.Queue("live", 4*time.Hour), p.Queue("dead", 4*time.Hour)
	p.store = memorysink.New(clock.System{}, memorysink.Settings{Versions: true})
	p.flights = memory.NewFlights(clock.System{})
	for _, body := range bodies {
		p.live.Send(p.Context(), []queue.Outgoing{{Body: body}})
	}
	now := usecasetest.Now()
	m := &flight.Manifest{Flight: "f", Sink: "search", Lane: flight.Live, Received: time.Now()}
	for _, message := range usecasetest.Must(p.live.Receive(p.Context(), 1000, 0))(p) {
		e := p.Event(message)
		p.Admit(e)
		m.Records = append(m.Records, flight.Record{Message: message, Events: []flight.Entry{
			{Doc: e.Doc, Key: e.Key, Class: e.Class, Op: e.Op, Due: now, Admitted: now},
		}})
	}
	p.f = load(&invocation{
		config: &p.Config, sinkName: "search", clock: clock.System{}, journal: &p.Notes, shards: p.Shards,
		jitter: func() float64 { return 0.5 }, start: time.Now(), hard: time.Now().Add(p.Config.Index.Timeout),
		lane: flight.Live, state: flight.State{Flight: "f", Remaining: flight.AllRemaining(len(bodies))},
	}, m)
	return p
}

// read reads the rows into the documents, as the stage decide does.
func (p *parts) read() []*document {
	p.Helper()
	usecasetest.OK(p, p.f.read(p.Context(), p.f.docs, shard.Consistent))
	return p.f.docs
}

func (p *parts) token() shard.Token { return "token" }

// claimed takes the leases of all documents.
func (p *parts) claimed() []*document {
	p.Helper()
	s := claimer{p.f, p.token}
	got := s.claim(p.Context(), p.read())
	p.count("claimed", len(got), len(p.f.docs))
	return got
}

func (p *parts) engine() *engine { return &engine{p.f.invocation, p.store} }

func (p *parts) health() *health {
	return &health{service: service{invocation: p.f.invocation, kind: "sink", name: "search"}, engine: p.engine()}
}

func (p *parts) budget() *budget     { return &budget{holding: p.f, sink: p.health()} }
func (p *parts) closer() *closer     { return &closer{p.f, p.dead, p.health()} }
func (p *parts) messages() *messages { return &messages{holding: p.f, queue: p.live} }
func (p *parts) builder() *builder   { return &builder{p.f, p.Sources} }

func (p *parts) origins(from Payloads) *origins {
	return &origins{invocation: p.f.invocation, payloads: from, by: map[string]*origin{}}
}

func (p *parts) planner() planner {
	m, b := p.messages(), p.budget()
	return planner{
		m, b.sink, b, &enrichers{holding: p.f}, &ending{m, b, p.flights},
		&execution{invocation: p.f.invocation, flights: p.flights},
	}
}

// count compares a number of documents, messages or writes with the wanted number.
func (p *parts) count(what string, got, want int) {
	p.Helper()
	if got != want {
		p.Errorf("%d %s, want %d", got, what, want)
	}
}

// answering makes a request for the flight's documents with the same outcome for each document.
func answering(docs []*document, o sink.Outcome) *request {
	r := &request{docs: docs}
	for _, d := range docs {
		r.ops, r.outcomes = append(r.ops, d.op(d.lease.At)), append(r.outcomes, o)
	}
	return r
}

// launched counts the executions that were started.
type launched int

func (l *launched) Start(context.Context, flight.State) error {
	*l++
	return nil
}
