// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/pipeline/receive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
)

// bench runs receive on the halves in memory, with virtual time.
type bench struct {
	senders queue.Senders // senders that are believed; nil believes all senders
	sender  string        // sender of every message
	*usecasetest.Rig
	flights    *memory.Flights
	schedule   *memory.Schedule
	live, dead *memory.Queue
	machine    *memory.Machine
	inject     fault.Injector
	failure    error // the error of a failed call, nil for the default
	ids        int
	sources    receive.Decoder // nil means the rig's sources
	parallel   fanout.Runner
	archive    *memory.Archive // nil means no archive
	open       objects.Open    // opens objects of many documents; nil if there are none
	bulk       *memory.Queue
	begun      time.Time // when the first message was sent

	mu    sync.Mutex
	woken []flight.State // the first state of every execution that woke
}

type decide = usecasetest.Decide

var (
	put = usecasetest.Put
	doc = usecasetest.Doc
	now = usecasetest.Now
	at  = usecasetest.At
)

// stage changes the settings of a bench; nil changes nothing.
type stage func(*config.Config)

// play runs a story in a synctest bubble.
func play(t *testing.T, change func(*config.Config), story func(b *bench)) {
	t.Helper()
	stage(change).play(t, story)
}

func (change stage) play(t *testing.T, story func(b *bench)) {
	t.Helper()
	usecasetest.Story(t, func(t *testing.T) {
		b := setup(t, change)
		defer b.machine.Close()
		story(b)
	})
}

// setup must run inside a synctest bubble, so that every clock is the clock of the bubble. The
// caller closes the machine.
func setup(t *testing.T, change func(*config.Config)) *bench {
	t.Helper()
	clk := clock.System{}
	b := &bench{
		Rig: usecasetest.Open(t, change), flights: memory.NewFlights(clk), schedule: memory.NewSchedule(),
		inject: usecasetest.Healthy,
	}
	b.dead = b.Queue("dead", b.Config.Queues.DeadLetterRetention)
	b.live, b.bulk = b.Queue("live", 90*24*time.Hour), b.Queue("bulk", 90*24*time.Hour)
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

// handler returns receive, with all of its I/O going through the injector.
func (b *bench) handler() (*receive.Handler, *fault.Invocation) {
	inv := fault.NewInvocation(b.inject, "receive", 1)
	inv.Failure = b.failure
	sources := b.sources
	if sources == nil {
		sources = b.Sources
	}
	h := &receive.Handler{
		Shards: inv.Shards(b.Shards), Flights: inv.Flights(b.flights), Launcher: inv.Launcher(b.machine),
		Ingest: inv.Queue(b.live),
		Dead:   inv.Queue(b.dead), Schedule: inv.Schedule(b.schedule), Sources: sources, Config: &b.Config,
		Parallel: b.parallel,
		Sink:     "search",
		Lane:     flight.Live,
		Clock:    clock.System{}, Journal: &b.Notes, NewID: func(time.Time) flight.ID {
			b.ids++
			return flight.ID(fmt.Sprintf("flight-%02d", b.ids))
		},
	}
	if b.archive != nil {
		h.Archive = inv.Archive(b.archive)
	}
	if b.open != nil {
		h.Objects, h.Bulk = inv.Objects(b.open), inv.Queue(b.bulk)
	}
	return h, inv
}

// send puts bodies into the live queue.
func (b *bench) send(bodies ...string) {
	b.Helper()
	if b.begun.IsZero() {
		b.begun = time.Now()
	}
	for _, body := range bodies {
		if err := queue.ErrorAt(b.live.Send(b.Context(), []queue.Outgoing{{Body: body}}), 0); err != nil {
			b.Fatal(err)
		}
	}
}

// poll receives the visible messages and gives them to the handler, as an event source mapping
// does. It then deletes the messages that are not in the answer.
func (b *bench) poll() (kept []string) {
	b.Helper()
	batch, err := b.live.Receive(b.Context(), 100, 0)
	if err != nil {
		b.Fatal(err)
	}
	h, inv := b.handler()
	before := len(b.Notes.All())
	h.Senders = b.senders
	for i := range batch {
		batch[i].Sender = b.sender
	}
	kept = h.Handle(b.Context(), batch)
	for _, n := range b.Notes.All()[before:] {
		if n.At.IsZero() || n.Sink != h.Sink || n.Lane != string(h.Lane) {
			b.Errorf("the note %+v lacks its time, sink or lane", n)
		}
	}
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

// keeps polls and checks how many messages the answer keeps.
func (b *bench) keeps(want int, why string) {
	b.Helper()
	if kept := b.poll(); len(kept) != want {
		b.Errorf("kept %v, want %d: %s", kept, want, why)
	}
}

// commit claims and commits a version, as index would.
func (b *bench) commit(e event.Event) {
	b.Helper()
	b.Commit(b.Claim(e), e.Op)
}

// manifests returns the manifests of all flights in the store.
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

// oneByOne runs the parts of an invocation one after the other, in their order.
func oneByOne(_, n int, f func(int)) {
	for i := range n {
		f(i)
	}
}
