// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
	_ "github.com/lullhq/lull/source/builtin"
)

// ground is an Operator over the halves in memory; nothing runs but what a test does by hand.
type ground struct {
	*testing.T
	*operate.Operator
	rig     *usecasetest.Rig
	flights *memory.Flights
	queues  map[string]*memory.Queue // "search live"
	sink    *memorysink.Sink
	machine *memory.Machine // its turns never end
	remote  bool            // the test asks over HTTP
}

func setup(t *testing.T) *ground {
	t.Helper()
	rig := usecasetest.Open(t, func(cfg *config.Config) {
		cfg.Sinks = map[string]config.Sink{"search": {Kind: "memory"}, "remote": {Kind: "memory"}}
		cfg.DefaultSink, cfg.DefaultCollection = "search", "content"
		cfg.Collections["content"], cfg.Collections["far"] = config.Collection{}, config.Collection{Sink: "remote"}
	})
	g := &ground{
		T: t, rig: rig, flights: memory.NewFlights(clock.System{}), queues: map[string]*memory.Queue{},
		sink: memorysink.New(clock.System{}, memorysink.Settings{Versions: true}),
	}
	g.machine = memory.NewMachine(clock.System{}, memory.MachineSettings{},
		func(ctx context.Context, s flight.State) (flight.State, error) {
			<-ctx.Done()
			return s, ctx.Err()
		})
	t.Cleanup(g.machine.Close)
	for name := range rig.Config.Sinks {
		for _, lane := range []flight.Lane{flight.Live, flight.Bulk} {
			q := name + " " + string(lane)
			g.queues[q] = memory.NewQueue(clock.System{},
				memory.QueueSettings{Name: q, Visibility: time.Minute, Retention: time.Hour})
		}
	}
	g.Operator = &operate.Operator{
		Shards: rig.Shards, Dead: rig.Letters, Schedule: memory.NewSchedule(), Flights: g.flights, Config: &rig.Config,
		Sources: rig.Sources, Clock: clock.System{}, Journal: &rig.Notes,
		Launcher: func(string) flight.Launcher { return g.machine },
		Queues: func(sink string, lane flight.Lane) queue.Queue {
			if q := g.queues[sink+" "+string(lane)]; q != nil {
				return q
			}
			return nil
		},
		Counts: func(context.Context) ([]operate.QueueStatus, error) {
			c := g.queues["search live"].Counts()
			return []operate.QueueStatus{{
				Queue: "search live", Visible: c.Visible, InFlight: c.InFlight,
				Delayed: c.Delayed,
			}}, nil
		},
		Scanner: g.rig.Shards, Sinks: map[string]sink.Sink{"search": g.sink},
		Readers: map[string]sink.Reader{"search": g.sink},
		History: func(_ context.Context, doc shard.DocID) ([]operate.Decision, error) {
			return []operate.Decision{{At: time.UnixMicro(1).UTC(), Step: "ADMIT", Text: "about " + string(doc)}}, nil
		},
	}
	return g
}

// API returns the operations of the Operator, whose fields a test may change at any time.
func (g *ground) API() operate.API { return operatetest.Late(g.Operator.API) }

// client asks the same Operator over HTTP.
func (g *ground) client() operate.API {
	s := httptest.NewServer(operate.Handler(g.API()))
	g.Cleanup(s.Close)
	return (&operate.Client{Base: s.URL + "/", HTTP: s.Client()}).API()
}

// everyWay runs a test on the Operator itself and over HTTP, each on a ground of its own, beside
// other tests.
func everyWay(t *testing.T, test func(t *testing.T, g *ground, api operate.API)) {
	t.Helper()
	t.Parallel()
	for name, api := range map[string]func(g *ground) operate.API{
		"operator": func(g *ground) operate.API { return g.API() },
		"client":   func(g *ground) operate.API { return g.client() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := setup(t)
			g.remote = name == "client"
			test(t, g, api(g))
		})
	}
}

// Short names for helpers that all tests of the use cases share.
var (
	put    = usecasetest.Put
	micros = usecasetest.Now
)

func outgoing(bodies ...string) (out []queue.Outgoing) {
	for _, b := range bodies {
		out = append(out, queue.Outgoing{Body: b})
	}
	return out
}

// hold admits the event into a flight of its name.
func (g *ground) hold(id flight.ID, body string) event.Event {
	g.Helper()
	e := g.rig.EventOf(body)
	g.rig.Write(shard.Admit(shard.Admission{Doc: e.Doc, Key: e.Key, Class: e.Class, Flight: string(id), Now: micros()}))
	m := queue.Message{
		ID: "m-" + string(id), Receipt: "r", Body: body,
		Sent: time.Now().UTC().Truncate(time.Millisecond), ReceiveCount: 1,
	}
	err := g.flights.Put(g.Context(), &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: id, Sink: "search", Lane: flight.Live, Received: time.Now(),
		Records: []flight.Record{{Message: m, Events: []flight.Entry{{
			Doc: e.Doc, Key: e.Key, Class: e.Class, Op: e.Op,
			Due: micros(), Admitted: micros(),
		}}}},
	})
	if err != nil {
		g.Fatal(err)
	}
	return e
}

// commit writes an admitted version to the sink and commits it.
func (g *ground) commit(e event.Event, document string) {
	g.Helper()
	l := shard.Lease{Doc: e.Doc, Key: e.Key, Token: "token-" + shard.Token(e.Version), At: micros()}
	g.rig.Write(shard.Claim(shard.Bid{Doc: l.Doc, Key: l.Key, Token: l.Token, Now: l.At, Until: l.At.Add(time.Second)}))
	op := sink.Op{
		Doc: e.Doc.Plain(), Kind: shard.Put, Fence: shard.Fence(l.At), Key: e.Key, Version: e.Version,
		At: l.At.Time(), Document: []byte(document),
	}
	if out := g.sink.Write(g.Context(), []sink.Op{op}); out[0].Kind != sink.Applied {
		g.Fatalf("write: %+v", out)
	}
	g.rig.Write(shard.Commit(l, shard.Put, micros(), time.Now().Add(time.Hour).Unix(), g.rig.Row(e.Doc)))
}

// die parks the dead letter of a version and marks its row.
func (g *ground) die(body string, reason deadletter.Reason) string {
	g.Helper()
	e := g.rig.EventOf(body)
	l := deadletter.New(queue.Message{ID: "m-" + e.Version, Body: body, Sent: time.Now()}, reason,
		"mapper_parsing_exception", e.Doc, e.Key, 0, time.Now())
	l.Sink, l.Lane = "search", string(flight.Live)
	usecasetest.Must(g.rig.Letters.Park(g.Context(), l))(g)
	g.rig.Write(shard.Park(e.Doc, e.Key, micros(), time.Now().Add(time.Hour).Unix(), g.rig.Row(e.Doc)))
	return l.ID
}

// sent returns how many messages were sent to a queue and are still in it.
func (g *ground) sent(q string) int { return g.queues[q].Counts().Total() }
