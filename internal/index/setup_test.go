package index_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/index"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/receive"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
	"github.com/lullhq/lull/internal/usecasetest"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

// bench is index on the halves in memory, with virtual time. Flights are made by receive; their
// turns are taken by the test.
type bench struct {
	*testing.T
	cfg              config.Config
	shards           *memory.Shards
	flights          *memory.Flights
	live, bulk, dead *memory.Queue
	sink             *memory.Sink
	sources          *source.Set
	notes            usecasetest.Notes
	launched         launches

	inject   fault.Injector
	failure  error // what a failed call looks like, nil for the usual
	payloads index.Payloads
	through  func(sink.Sink) sink.Sink     // what stands between index and the sink
	between  func(queue.Queue) queue.Queue // and between index and the live queue, nil for nothing
	clock    clock.Clock                   // of index
	ids      int
	tokens   int
	mu       sync.Mutex // of tokens
}

// launches keeps the executions that were started, for a test that takes their turns itself.
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
	well  = usecasetest.Healthy
	fails = usecasetest.Fails
	at    = usecasetest.At
)

// stage describes a bench.
type stage struct {
	cfg    func(*config.Config)
	sink   memory.SinkSettings
	noVers bool
}

// play runs a story in a bubble.
func (st stage) play(t *testing.T, story func(b *bench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { story(st.setup(t)) })
}

// setup must run inside a synctest bubble, so that every clock is the bubble's.
func (st stage) setup(t *testing.T) *bench {
	t.Helper()
	clk := clock.System{}
	b := &bench{
		T: t, cfg: config.Default(), shards: memory.NewShards(), flights: memory.NewFlights(clk), inject: well,
		clock: clk,
	}
	b.through = func(s sink.Sink) sink.Sink { return s }
	versions := !st.noVers
	b.cfg.Sinks = map[string]config.Sink{"search": {Kind: "memory", Versions: &versions}}
	b.cfg.Sources["s3"] = config.Source{Kind: "s3", Collection: "content"}
	b.cfg.DefaultSource = "native"
	if st.cfg != nil {
		st.cfg(&b.cfg)
	}
	b.cfg.Complete()
	st.sink.Versions, st.sink.RememberOps = versions, true
	b.sink = memory.NewSink(clk, st.sink)
	var err error
	if b.sources, err = source.New(&b.cfg); err != nil {
		t.Fatal(err)
	}
	set := memory.QueueSettings{Visibility: b.cfg.Queues.Visibility, Retention: b.cfg.Queues.Retention}
	set.Name = "live"
	b.live = memory.NewQueue(clk, set)
	set.Name = "bulk"
	b.bulk = memory.NewQueue(clk, set)
	b.dead = memory.NewQueue(clk, memory.QueueSettings{Name: "dead", Retention: b.cfg.Queues.DeadLetterRetention})
	return b
}

func put(id string, version int) string {
	return fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"%d","data":{"title":"v%d"}}`, id, version,
		version)
}

func doc(id string) shard.DocID { return shard.DocID("content#" + id) }

func now() shard.Micros { return shard.MicrosOf(time.Now()) }

// hold sends bodies to the live queue and lets receive hold them: one flight.
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

// receive lets receive judge what is visible in a lane: as an event source mapping would, and
// returns the flight that it started.
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
		Shards: b.shards, Flights: b.flights, Launcher: &b.launched, Ingest: q, Dead: b.dead,
		Schedule: memory.NewSchedule(), Sources: b.sources,
		Config: &b.cfg, Sink: "search", Lane: lane, Clock: clock.System{}, Journal: &b.notes, NewID: func() flight.ID {
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

// invocation is what one invocation of index has for itself.
type invocation struct {
	clock  clock.Clock
	sink   sink.Sink
	inject fault.Injector
	queue  func(queue.Queue) queue.Queue // nil for nothing in between
}

func (b *bench) invocation() invocation {
	return invocation{clock: b.clock, sink: b.through(b.sink), inject: b.inject, queue: b.between}
}

// invoke is one invocation of index, at once.
func (b *bench) invoke(s flight.State) (flight.State, *fault.Invocation, error) {
	i := b.invocation()
	inv := fault.NewInvocation(i.inject, "index", 1)
	inv.Failure = b.failure
	out, err := b.run(i, inv, s)
	return out, inv, err
}

func (b *bench) run(i invocation, inv *fault.Invocation, s flight.State) (flight.State, error) {
	ctx, cancel := i.clock.Deadline(b.Context(), b.cfg.Index.Timeout)
	defer cancel()
	live := queue.Queue(b.live)
	if i.queue != nil {
		live = i.queue(live)
	}
	h := index.Handler{
		Shards: inv.Shards(b.shards), Flights: inv.Flights(b.flights), Launcher: inv.Launcher(&b.launched),
		Queues: map[flight.Lane]queue.Queue{flight.Live: inv.Queue(live), flight.Bulk: inv.Queue(b.bulk)},
		Dead:   inv.Queue(b.dead),
		Sink:   inv.Sink(i.sink), SinkName: "search", Sources: b.sources, Payloads: b.payloads, Config: &b.cfg,
		Clock:   i.clock,
		Journal: &b.notes, NewToken: b.token, Jitter: func() float64 { return 0.5 },
	}
	s.Remaining = s.Remaining.Clone() // as JSON between two states would
	return h.Turn(ctx, s)
}

func (b *bench) token() shard.Token {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens++
	return shard.Token(fmt.Sprint("token-", b.tokens))
}

// turn waits until the flight wakes and takes one turn, which must not fail.
func (b *bench) turn(s flight.State) flight.State {
	b.Helper()
	time.Sleep(time.Until(s.Wake()))
	next, inv, err := b.invoke(s)
	if err != nil || inv.Killed() {
		b.Fatalf("turn: %v, killed: %v", err, inv.Killed())
	}
	if !next.Done && !next.Wake().After(time.Now()) {
		b.Errorf("wakes at %s, which is past: it would spin", next.WakeAt)
	}
	return next
}

// fly takes turns until the flight is done, at most as many as given, and says how many it took.
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

// event decodes a body's only event.
func (b *bench) event(body string) event.Event {
	b.Helper()
	r := b.sources.Decode(queue.Message{Body: body})
	if len(r) != 1 || r[0].Invalid != nil || r[0].Skip != "" {
		b.Fatalf("decode: %+v", r)
	}
	return r[0].Event
}

func (b *bench) key(id string, version int) shard.OrderKey { return b.event(put(id, version)).Key }

func (b *bench) read(id shard.DocID) shard.Row {
	b.Helper()
	rows, err := b.shards.Read(b.Context(), []shard.DocID{id}, shard.Consistent)
	if err != nil {
		b.Fatal(err)
	}
	return rows[0]
}

func (b *bench) row(id string) shard.Row { return b.read(doc(id)) }

// change puts the row of a document as f leaves it.
func (b *bench) change(id string, f func(r *shard.Row)) {
	b.Helper()
	b.changeRow(doc(id), f)
}

func (b *bench) changeRow(id shard.DocID, f func(r *shard.Row)) {
	b.Helper()
	r := b.read(id)
	f(&r)
	b.write(shardtest.Put(r))
}

func (b *bench) write(w shard.Write) {
	b.Helper()
	if _, err := b.shards.Write(b.Context(), w); err != nil {
		b.Fatalf("%s: %v", w.Transition, err)
	}
}

// letters takes the dead letters that were sent out of their queue.
func (b *bench) letters() []deadletter.Letter {
	b.Helper()
	ms, err := b.dead.Receive(b.Context(), 1000, 0)
	if err != nil {
		b.Fatal(err)
	}
	var out []deadletter.Letter
	for _, m := range ms {
		l, err := deadletter.Read(m)
		if err != nil {
			b.Fatalf("read a dead letter: %v", err)
		}
		out = append(out, l)
		b.dead.Delete(b.Context(), []string{m.Receipt})
	}
	return out
}

func (b *bench) noted(step journal.Step, want int) {
	b.Helper()
	if got := len(b.notes.Of(step)); got != want {
		b.Errorf("%d notes %q, want %d", got, step, want)
	}
}

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

// inQueue checks how many messages the live queue still has.
func (b *bench) inQueue(want int) {
	b.Helper()
	if got := b.live.Counts().Total(); got != want {
		b.Errorf("%d messages in the queue, want %d", got, want)
	}
}
