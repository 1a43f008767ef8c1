// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/pipeline/receive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// bench runs index on the halves in memory, with virtual time. receive makes the flights, and the
// test makes their turns.
type bench struct {
	*usecasetest.Rig
	flights          *memory.Flights
	live, bulk, dead *memory.Queue
	sink             *memorysink.Sink
	launched         launches

	inject   fault.Injector
	failure  error // the error of a failed call, nil for the default
	payloads index.Payloads
	fetcher  index.Fetcher
	enricher enrich.Caller                 // enricher of the collection "content", nil for none
	sources  index.Source                  // nil means the rig's sources
	through  func(sink.Sink) sink.Sink     // wraps the sink for index
	between  func(queue.Queue) queue.Queue // wraps the live queue for index; nil: no wrapper
	clock    clock.Clock                   // the clock of index
	ids      int
	tokens   int
	mu       sync.Mutex // guards tokens
}

// launches keeps the executions that were started, so that a test can make their turns itself.
type launches struct {
	mu   sync.Mutex
	list []flight.State
}

func (l *launches) Start(_ context.Context, s flight.State) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Started = now()
	l.list = append(l.list, s)
	return nil
}

type decide = usecasetest.Decide

var (
	put   = usecasetest.Put
	doc   = usecasetest.Doc
	now   = usecasetest.Now
	well  = usecasetest.Healthy
	fails = usecasetest.Fails
	at    = usecasetest.At
)

// stage describes the settings and the sink of a bench.
type stage struct {
	cfg    func(*config.Config)
	sink   memorysink.Settings
	noVers bool
}

// play runs a test in a synctest bubble.
func (st stage) play(t *testing.T, story func(b *bench)) {
	t.Helper()
	usecasetest.Story(t, func(t *testing.T) { story(st.setup(t)) })
}

// setup must run inside a synctest bubble, so that every clock is the clock of the bubble.
func (st stage) setup(t *testing.T) *bench {
	t.Helper()
	clk := clock.System{}
	versions := !st.noVers
	b := &bench{
		Rig: usecasetest.Open(t, func(c *config.Config) {
			c.Sinks = map[string]config.Sink{"search": {Kind: "memory", Versions: &versions}}
			c.Sources["s3"] = config.Source{Kind: "s3", Collection: "content"}
			c.DefaultSource = "native"
			if st.cfg != nil {
				st.cfg(c)
			}
		}),
		flights: memory.NewFlights(clk), inject: well, clock: clk,
		through: func(s sink.Sink) sink.Sink { return s },
	}
	st.sink.Versions, st.sink.RememberOps = versions, true
	b.sink = memorysink.New(clk, st.sink)
	b.live = b.Queue("live", b.Config.Queues.Retention)
	b.bulk = b.Queue("bulk", b.Config.Queues.Retention)
	b.dead = b.Queue("dead", b.Config.Queues.DeadLetterRetention)
	return b
}

// hold sends bodies to the live queue and lets receive hold them in one flight.
func (b *bench) hold(bodies ...string) flight.State {
	b.Helper()
	out := make([]queue.Outgoing, len(bodies))
	for i, body := range bodies {
		out[i].Body = body
	}
	return b.holdOn(flight.Live, out...)
}

func (b *bench) holdOn(lane flight.Lane, out ...queue.Outgoing) flight.State {
	b.Helper()
	q := b.live
	if lane == flight.Bulk {
		q = b.bulk
	}
	if errs := q.Send(b.Context(), out); errs != nil {
		b.Fatal(errs)
	}
	return b.receive(lane)
}

// receive lets receive judge the visible messages of a lane, as an event source mapping would. It
// returns the flight that receive started.
func (b *bench) receive(lane flight.Lane) flight.State {
	b.Helper()
	q := b.live
	if lane == flight.Bulk {
		q = b.bulk
	}
	batch, err := q.Receive(b.Context(), 10_000, 0)
	if err != nil {
		b.Fatal(err)
	}
	h := receive.Handler{
		Shards: b.Shards, Flights: b.flights, Launcher: &b.launched, Ingest: q, Dead: b.dead,
		Schedule: memory.NewSchedule(), Sources: b.Sources,
		Config: &b.Config, Sink: "search", Lane: lane, Clock: clock.System{}, Journal: &b.Notes,
		NewID: func(time.Time) flight.ID {
			b.ids++
			return flight.ID(fmt.Sprintf("flight-%02d", b.ids))
		},
	}
	before := len(b.launched.list)
	kept := h.Handle(b.Context(), batch)
	for _, m := range batch {
		if !slices.Contains(kept, m.ID) {
			q.Delete(b.Context(), []string{m.Receipt})
		}
	}
	if len(b.launched.list) == before {
		return flight.State{Done: true}
	}
	return b.launched.list[before]
}

// invocation is the state of one invocation of index.
type invocation struct {
	clock  clock.Clock
	sink   sink.Sink
	inject fault.Injector
	queue  func(queue.Queue) queue.Queue // nil: no wrapper
}

func (b *bench) invocation() invocation {
	return invocation{clock: b.clock, sink: b.through(b.sink), inject: b.inject, queue: b.between}
}

// invoke runs one invocation of index at once.
func (b *bench) invoke(s flight.State) (flight.State, *fault.Invocation, error) {
	i := b.invocation()
	inv := fault.NewInvocation(i.inject, "index", 1)
	inv.Failure = b.failure
	out, err := b.run(i, inv, s)
	return out, inv, err
}

func (b *bench) run(i invocation, inv *fault.Invocation, s flight.State) (flight.State, error) {
	ctx, cancel := i.clock.Deadline(b.Context(), b.Config.Index.Timeout)
	defer cancel()
	live := queue.Queue(b.live)
	if i.queue != nil {
		live = i.queue(live)
	}
	sources := b.sources
	if sources == nil {
		sources = b.Sources
	}
	h := index.Handler{
		Shards: inv.Shards(b.Shards), Flights: inv.Flights(b.flights), Launcher: inv.Launcher(&b.launched),
		Queues: map[flight.Lane]queue.Queue{flight.Live: inv.Queue(live), flight.Bulk: inv.Queue(b.bulk)},
		Dead:   inv.Queue(b.dead),
		Sink:   inv.Sink(i.sink), SinkName: "search", Sources: sources, Payloads: b.payloads, Fetcher: b.fetcher, Config: &b.Config,
		Enrichers: map[shard.Collection]enrich.Caller{"content": b.enricher},
		Clock:     i.clock,
		Journal:   &b.Notes, NewToken: b.token, Jitter: func() float64 { return 0.5 },
	}
	s.Remaining = s.Remaining.Clone() // JSON between two states copies Remaining, too
	return h.Turn(ctx, s)
}

func (b *bench) token() shard.Token {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens++
	return shard.Token(fmt.Sprint("token-", b.tokens))
}

// turn waits until the flight wakes and makes one turn, which must not fail.
func (b *bench) turn(s flight.State) flight.State {
	b.Helper()
	time.Sleep(time.Until(s.Wake()))
	next, inv, err := b.invoke(s)
	if err != nil || inv.Killed() {
		b.Fatalf("turn: %v, killed: %v", err, inv.Killed())
	}
	if !next.Done && !next.Wake().After(time.Now()) {
		b.Errorf("the flight wakes at %s, which is past: its turns would never stop", next.WakeAt)
	}
	return next
}

// fly makes turns until the flight is done, and returns their number. The test fails if more turns
// are needed than most.
func (b *bench) fly(s flight.State, most int) (turns int) {
	b.Helper()
	for ; !s.Done; turns++ {
		if turns == most {
			b.Fatalf("not done after %d turns: %+v", turns, s)
		}
		s = b.turn(s)
	}
	return turns
}

// many returns the events of the first versions of n documents.
func many(n int, body func(id string, version int) string, named string) (bodies []string) {
	for i := range n {
		bodies = append(bodies, body(fmt.Sprint(named, i), 1))
	}
	return bodies
}

// delivers makes turns until the flight is done, at most as many as given. Then it checks the
// version of a document in the sink, "" for none.
func (b *bench) delivers(s flight.State, most int, id, version string) {
	b.Helper()
	b.fly(s, most)
	b.holds(id, version)
}

// queued checks how many messages of the live queue are visible, and how many are not.
func (b *bench) queued(visible, invisible int, why string) {
	b.Helper()
	if c := b.live.Counts(); c.Visible != visible || c.InFlight != invisible || c.Total() != visible+invisible {
		b.Errorf("queue %+v, want %d visible and %d not: %s", c, visible, invisible, why)
	}
}

// flightsLeft checks how many flights have a manifest or a checkpoint.
func (b *bench) flightsLeft(want int) {
	b.Helper()
	if list, _, err := b.flights.List(b.Context(), "", 10); err != nil || len(list) != want {
		b.Errorf("flights %v (%v) are left, want %d", list, err, want)
	}
}

func (b *bench) key(id string, version int) shard.OrderKey { return b.EventOf(put(id, version)).Key }

// holds checks the version of a document in the sink, "" for none.
func (b *bench) holds(id, want string) {
	b.Helper()
	got, _, err := b.sink.Get(b.Context(), doc(id))
	if err != nil {
		b.Fatal(err)
	}
	if got.Version != want {
		b.Errorf("%s: version %q in the sink, want %q", id, got.Version, want)
	}
}

// requests checks how many requests the sink got.
func (b *bench) requests(want int64, why string) {
	b.Helper()
	if got := b.sink.Counts().Requests; got != want {
		b.Errorf("%d requests, want %d: %s", got, want, why)
	}
}

// leased gives the lease of a pending version to another owner.
func (b *bench) leased(id shard.DocID, length time.Duration) {
	b.Helper()
	b.Change(id, func(r *shard.Row) { r.Owner, r.LeaseUntil, r.Claimed = "somebody", now().Add(length), r.Pending })
}

// inQueue checks how many messages the live queue still has.
func (b *bench) inQueue(want int) {
	b.Helper()
	b.InQueue(b.live, want, "of the live lane")
}
