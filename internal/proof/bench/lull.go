// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/pipeline/receive"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// halves are implementations of the seams of lull's functions: in memory, with the AWS clients, or
// of a variant.
type halves struct {
	config   *config.Config
	sources  *source.Set
	rows     shard.Store
	flights  flight.Store
	launcher flight.Launcher
	live     queue.Queue
	dead     queue.Queue
	schedule schedule.Store
	sink     sink.Sink
	clk      clock.Clock
}

func (h halves) receiver() *receive.Handler {
	return &receive.Handler{
		Shards: h.rows, Flights: h.flights, Launcher: h.launcher, Ingest: h.live, Dead: h.dead,
		Schedule: h.schedule, Sources: h.sources, Config: h.config, Sink: sinkName, Lane: flight.Live,
		Clock: h.clk, Journal: journal.Discard{},
		NewID: flight.NewID,
	}
}

func (h halves) indexer() *index.Handler {
	return &index.Handler{
		Shards: h.rows, Flights: h.flights, Launcher: h.launcher,
		Queues: map[flight.Lane]queue.Queue{flight.Live: h.live, flight.Bulk: h.live}, Dead: h.dead, Sink: h.sink,
		SinkName: sinkName, Sources: h.sources, Config: h.config, Clock: h.clk, Journal: journal.Discard{},
		NewToken: rows.NewToken, Jitter: rand.Float64,
	}
}

func newSources(t testing.TB, c *config.Config) *source.Set {
	t.Helper()
	set, err := source.New(c)
	check(t, err)
	return set
}

// lull runs the real code: receive and index for the live lane, and prune at its interval.
type lull struct {
	*World
	sources  atomic.Pointer[source.Set]
	table    atomic.Pointer[memory.Shards]
	flights  billedFlights
	dead     *memory.Queue
	schedule *memory.Schedule
	machine  *memory.Machine

	// A variant may replace the following functions.
	store  func(v *fault.Invocation) flight.Store
	launch func(v *fault.Invocation) flight.Launcher
	take   handler
}

// Lull starts lull's stack.
func Lull(ctx context.Context, w *World) { start(ctx, w, func(*lull) {}) }

// start builds the stack, lets change replace some halves, and starts the stack.
func start(ctx context.Context, w *World, change func(l *lull)) {
	l := &lull{
		World:   w,
		flights: billedFlights{memory.NewFlights(w.clk), w.Meter}, schedule: memory.NewSchedule(),
		dead: memory.NewQueue(w.clk, memory.QueueSettings{Name: "dead", Visibility: w.Config.Queues.Visibility}),
	}
	l.sources.Store(newSources(w.t, w.Config))
	l.table.Store(memory.NewShards())
	w.images = append(w.images, func() (restore func()) {
		rows := l.table.Load().Copy()
		return func() { l.table.Store(rows) }
	})
	w.reconcile, w.newEpoch = l.compare, l.raiseEpoch
	l.machine = memory.NewMachine(w.clk, memory.MachineSettings{
		Retries: 2, RetryAfter: w.Config.AmbiguousRetry(sinkName), Report: w.report,
	}, l.turn)
	w.busy, w.stop = l.machine.Running, l.machine.Close
	l.store = func(v *fault.Invocation) flight.Store { return v.Flights(l.flights) }
	l.launch = func(v *fault.Invocation) flight.Launcher { return v.Launcher(launcher{l}) }
	l.take = func(ctx context.Context, v *fault.Invocation, clk clock.Clock, batch []queue.Message) []string {
		return l.halves(v, clk).receiver().Handle(ctx, batch)
	}
	change(l)
	w.poll(ctx, "receive", w.Config.Receive.Timeout, l.take)
	w.wg.Go(func() { l.pruning(ctx) })
}

func (l *lull) rows() billedRows { return billedRows{l.table.Load(), l.Meter} }

// compare runs `lull index repair`, which the runbook asks for after a restore.
func (l *lull) compare(ctx context.Context) error {
	v := fault.NewInvocation(l.Meter, "reconcile", l.invoked.Add(1))
	s := reconcile.Service{
		Looker: reconcile.Looker{
			Shards: v.Shards(l.rows()), Reader: l.watch.now(), SinkName: sinkName, Config: l.Config, Clock: l.clk,
		},
		Scanner: v.Scanner(l.rows()), Sink: v.Sink(l.Sink), Journal: journal.Discard{}, NewToken: rows.NewToken,
	}
	for o := (reconcile.Order{Collection: "content"}); ; {
		p, err := s.Compare(ctx, o)
		if err == nil && p.Waiting+p.Outcomes[reconcile.Later]+p.Outcomes[reconcile.Failed] > 0 {
			err = fmt.Errorf("compare: %+v", p.Report)
		}
		if err != nil || p.Next == nil {
			return err
		}
		o.From = *p.Next
	}
}

// raiseEpoch changes the settings as they must change after the source was restored.
func (l *lull) raiseEpoch() {
	c := *l.Config
	c.Sources = maps.Clone(c.Sources)
	for name, s := range c.Sources {
		s.Epoch++
		c.Sources[name] = s
	}
	l.sources.Store(newSources(l.t, &c))
}

// halves returns the halves for one invocation.
func (l *lull) halves(v *fault.Invocation, clk clock.Clock) halves {
	return halves{
		config: l.Config, sources: l.sources.Load(), rows: v.Shards(l.rows()), flights: l.store(v),
		launcher: l.launch(v), live: l.queueFor(v), dead: v.Queue(l.dead), schedule: v.Schedule(l.schedule),
		sink: v.Sink(l.Sink), clk: clk,
	}
}

// turn is the task of the state machine: a transition, the function, and the next transition.
func (l *lull) turn(ctx context.Context, s flight.State) (flight.State, error) {
	_ = l.clk.Sleep(ctx, l.Meter.lat.draw(stateLatency)) // the next call notices a time-out
	var out flight.State
	var failed error
	err := l.invoke(ctx, "index", indexMegabytes, l.Config.Index.Timeout,
		func(ctx context.Context, v *fault.Invocation, clk clock.Clock) {
			out, failed = l.halves(v, clk).indexer().Turn(ctx, s)
		})
	if err == nil {
		err = failed
	}
	_ = l.clk.Sleep(ctx, l.Meter.lat.draw(stateLatency)) // the next call notices a time-out
	l.billTurn(s, out, err)
	return out, err
}

// pruning runs prune at the start and at its interval, as the EventBridge rule does.
func (l *lull) pruning(ctx context.Context) {
	deadLetters := memory.NewDeadLetters()
	for {
		_ = l.invoke(ctx, "prune", pruneMegabytes, time.Minute,
			func(ctx context.Context, v *fault.Invocation, clk clock.Clock) {
				r := prune.Pruner{
					Shards: v.Shards(l.rows()), Scanner: v.Scanner(l.rows()), Flights: l.store(v),
					Letters: v.DeadLetters(deadLetters), Schedule: v.Schedule(l.schedule), Live: l.queueFor(v),
					Bulk: l.queueFor(v), Launcher: l.launch(v), Config: l.Config, Sink: sinkName, Clock: clk,
					Journal: journal.Discard{}, NewToken: rows.NewToken, NewID: flight.NewID,
				}
				if _, err := r.Run(ctx); err != nil && ctx.Err() == nil {
					l.report(err)
				}
			})
		if l.clk.Sleep(ctx, l.Config.Lifecycle.PruneEvery) != nil {
			return
		}
	}
}
