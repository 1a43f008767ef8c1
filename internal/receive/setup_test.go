package receive_test

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
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/receive"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
	"github.com/lullhq/lull/internal/usecasetest"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

// bench is receive on the halves in memory, with virtual time.
type bench struct {
	*testing.T
	cfg        config.Config
	shards     *memory.Shards
	flights    *memory.Flights
	schedule   *memory.Schedule
	live, dead *memory.Queue
	machine    *memory.Machine
	sources    *source.Set
	notes      usecasetest.Notes
	inject     fault.Injector
	failure    error // what a failed call looks like, nil for the usual
	ids        int

	mu    sync.Mutex
	woken []flight.State // the first state of every execution that woke
}

type decide = usecasetest.Decide

var at = usecasetest.At

// play runs a story in a bubble.
func play(t *testing.T, change func(*config.Config), story func(b *bench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, change)
		defer b.machine.Close()
		story(b)
	})
}

// setup must run inside a synctest bubble, so that every clock is the bubble's. The caller closes
// the machine.
func setup(t *testing.T, change func(*config.Config)) *bench {
	t.Helper()
	clk := clock.System{}
	b := &bench{T: t, cfg: config.Default(), shards: memory.NewShards(), schedule: memory.NewSchedule()}
	b.flights = memory.NewFlights(clk)
	b.inject = usecasetest.Healthy
	if change != nil {
		change(&b.cfg)
	}
	b.cfg.Complete()
	var err error
	if b.sources, err = source.New(&b.cfg); err != nil {
		t.Fatal(err)
	}
	b.dead = memory.NewQueue(clk, memory.QueueSettings{Name: "dead", Retention: b.cfg.Queues.DeadLetterRetention})
	b.live = memory.NewQueue(clk, memory.QueueSettings{
		Name: "live", Visibility: b.cfg.Queues.Visibility,
		Retention: 90 * 24 * time.Hour,
	})
	b.machine = memory.NewMachine(clk, memory.MachineSettings{},
		func(_ context.Context, s flight.State) (flight.State, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.woken = append(b.woken, s)
			s.Done = true
			return s, nil
		})
	return b
}

// handler is receive whose I/O goes through the injector.
func (b *bench) handler() (*receive.Handler, *fault.Invocation) {
	inv := fault.NewInvocation(b.inject, "receive", 1)
	inv.Failure = b.failure
	return &receive.Handler{
		Shards: inv.Shards(b.shards), Flights: inv.Flights(b.flights), Launcher: inv.Launcher(b.machine),
		Ingest: inv.Queue(b.live),
		Dead:   inv.Queue(b.dead), Schedule: inv.Schedule(b.schedule), Sources: b.sources, Config: &b.cfg,
		Sink:  "search",
		Lane:  flight.Live,
		Clock: clock.System{}, Journal: &b.notes, NewID: func() flight.ID {
			b.ids++
			return flight.ID(fmt.Sprintf("flight-%02d", b.ids))
		},
	}, inv
}

func put(id string, version int) string {
	return fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"%d","data":{"title":"v%d"}}`, id, version,
		version)
}

func doc(id string) shard.DocID { return shard.DocID("content#" + id) }

func now() shard.Micros { return shard.MicrosOf(time.Now()) }

// send puts bodies into the live queue.
func (b *bench) send(bodies ...string) {
	b.Helper()
	for _, body := range bodies {
		if err := queue.ErrorAt(b.live.Send(b.Context(), []queue.Outgoing{{Body: body}}), 0); err != nil {
			b.Fatal(err)
		}
	}
}

// poll receives what is visible and gives it to the handler, as an event source mapping does: what
// is not in the answer is deleted.
func (b *bench) poll() (kept []string) {
	b.Helper()
	batch, err := b.live.Receive(b.Context(), 100, 0)
	if err != nil {
		b.Fatal(err)
	}
	h, inv := b.handler()
	kept = h.Handle(b.Context(), batch)
	if inv.Killed() {
		return nil
	}
	for _, m := range batch {
		if !slices.Contains(kept, m.ID) {
			b.live.Delete(b.Context(), []string{m.Receipt})
		}
	}
	return kept
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

func (b *bench) row(id string) shard.Row {
	b.Helper()
	rows, err := b.shards.Read(b.Context(), []shard.DocID{doc(id)}, shard.Consistent)
	if err != nil {
		b.Fatal(err)
	}
	return rows[0]
}

// change puts the row of a document as f leaves it.
func (b *bench) change(id string, f func(r *shard.Row)) {
	b.Helper()
	r := b.row(id)
	f(&r)
	b.write(shardtest.Put(r))
}

func (b *bench) write(w shard.Write) {
	b.Helper()
	if _, err := b.shards.Write(b.Context(), w); err != nil {
		b.Fatalf("%s: %v", w.Transition, err)
	}
}

// commit writes a version as index would.
func (b *bench) commit(e event.Event) {
	b.Helper()
	l := shard.Lease{Doc: e.Doc, Key: e.Key, Token: shard.Token("token of " + e.Version), At: now()}
	b.write(shard.Claim(shard.Bid{
		Doc: l.Doc, Key: l.Key, Token: l.Token, Now: l.At,
		Until: l.At.Add(13 * time.Second),
	}))
	rows, err := b.shards.Read(b.Context(), []shard.DocID{e.Doc}, shard.Consistent)
	if err != nil {
		b.Fatal(err)
	}
	b.write(shard.Commit(l, e.Op, now(), b.cfg.Expires(time.Now()), rows[0]))
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

// manifests are the flights in the store.
func (b *bench) manifests() []*flight.Manifest {
	b.Helper()
	list, _, err := b.flights.List(b.Context(), "", 1000)
	if err != nil {
		b.Fatal(err)
	}
	var out []*flight.Manifest
	for _, f := range list {
		m, err := b.flights.Get(b.Context(), f.ID)
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func (b *bench) noted(step journal.Step, want int) {
	b.Helper()
	if got := len(b.notes.Of(step)); got != want {
		b.Errorf("%d notes %q, want %d", got, step, want)
	}
}
