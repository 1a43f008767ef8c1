package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	mrand "math/rand/v2"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/index"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/prune"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/receive"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// lull is the real code: receive and index for the live lane, prune at its interval.
type lull struct {
	*World
	sources  *source.Set
	rows     billedRows
	flights  billedFlights
	dead     *memory.Queue
	schedule *memory.Schedule
	letters  *memory.Letters
	machine  *memory.Machine

	// What a variant may replace.
	store  func(v *fault.Invocation) flight.Store
	launch func(v *fault.Invocation) flight.Launcher
	take   handler
}

// Lull starts the stack.
func Lull(ctx context.Context, w *World) (stop func(), err error) {
	return start(ctx, w, func(*lull) {})
}

// start builds the stack, lets change put other halves in, and starts it.
func start(ctx context.Context, w *World, change func(l *lull)) (stop func(), err error) {
	sources, err := source.New(w.Config)
	if err != nil {
		return nil, err
	}
	l := &lull{
		World: w, sources: sources, rows: billedRows{memory.NewShards(), w.Meter},
		flights:  billedFlights{memory.NewFlights(w.clk), w.Meter},
		dead:     memory.NewQueue(w.clk, memory.QueueSettings{Name: "dead", Visibility: w.Config.Queues.Visibility}),
		schedule: memory.NewSchedule(), letters: memory.NewLetters(),
	}
	limit := memory.ExpressLimit
	if w.Config.Flight.Kind == config.FlightStandard {
		limit = 0
	}
	l.machine = memory.NewMachine(w.clk, memory.MachineSettings{
		Limit: limit, Retries: 2, RetryAfter: w.Config.AmbiguousRetry(sinkName), Report: func(err error) {
			if w.mix == nil {
				w.fail(err)
			}
		},
	}, l.turn)
	w.busy = l.machine.Running
	l.store = func(v *fault.Invocation) flight.Store { return v.Flights(l.flights) }
	l.launch = func(v *fault.Invocation) flight.Launcher { return v.Launcher(launcher{l}) }
	l.take = l.receive
	change(l)
	w.poll(ctx, "receive", w.Config.Receive.Timeout, func(ctx context.Context, v *fault.Invocation, clk clock.Clock,
		batch []queue.Message,
	) []string {
		return l.take(ctx, v, clk, batch)
	})
	w.wg.Go(func() { l.pruning(ctx) })
	return l.machine.Close, nil
}

func (l *lull) receive(ctx context.Context, v *fault.Invocation, clk clock.Clock, batch []queue.Message) []string {
	return l.receiver(v, clk).Handle(ctx, batch)
}

// turn is the state machine's task: a transition, the function, and the transitions around it.
func (l *lull) turn(ctx context.Context, s flight.State) (flight.State, error) {
	_ = l.clk.Sleep(ctx, l.Meter.lat.draw(stateLatency)) // Hold is left
	var out flight.State
	var failed error
	err := l.invoke(ctx, "index", indexMegabytes, l.Config.Index.Timeout,
		func(ctx context.Context, v *fault.Invocation, clk clock.Clock) {
			out, failed = l.indexer(v, clk).Turn(ctx, s)
		})
	if err == nil {
		err = failed
	}
	_ = l.clk.Sleep(ctx, l.Meter.lat.draw(stateLatency)) // Left is left
	l.billTurn(s, out, err)
	return out, err
}

// receiver is receive for one invocation.
func (l *lull) receiver(v *fault.Invocation, clk clock.Clock) *receive.Handler {
	return &receive.Handler{
		Shards: v.Shards(l.rows), Flights: l.store(v), Launcher: l.launch(v), Ingest: l.queueFor(v),
		Dead:     v.Queue(l.dead),
		Schedule: v.Schedule(l.schedule), Sources: l.sources, Config: l.Config, Sink: sinkName, Lane: flight.Live,
		Clock:   clk,
		Journal: journal.Discard{}, NewID: l.newID,
	}
}

// indexer is index for one invocation.
func (l *lull) indexer(v *fault.Invocation, clk clock.Clock) *index.Handler {
	return &index.Handler{
		Shards: v.Shards(l.rows), Flights: l.store(v), Launcher: l.launch(v),
		Queues: map[flight.Lane]queue.Queue{flight.Live: l.queueFor(v), flight.Bulk: l.queueFor(v)},
		Dead:   v.Queue(l.dead), Sink: v.Sink(l.Sink),
		SinkName: sinkName, Sources: l.sources, Config: l.Config, Clock: clk, Journal: journal.Discard{},
		NewToken: newToken, Jitter: mrand.Float64,
	}
}

// pruning runs prune at start and at its interval, as the rule does.
func (l *lull) pruning(ctx context.Context) {
	for {
		_ = l.invoke(ctx, "prune", pruneMegabytes, time.Minute,
			func(ctx context.Context, v *fault.Invocation, clk clock.Clock) {
				r := prune.Pruner{
					Shards: v.Shards(l.rows), Scanner: v.Scanner(l.rows), Flights: l.store(v),
					Letters:  v.Letters(l.letters),
					Schedule: v.Schedule(l.schedule), Live: l.queueFor(v), Bulk: l.queueFor(v), Launcher: l.launch(v),
					Config: l.Config,
					Sink:   sinkName, Clock: clk, Journal: journal.Discard{},
				}
				if _, err := r.Run(ctx); err != nil && l.mix == nil && ctx.Err() == nil {
					l.fail(err)
				}
			})
		if l.clk.Sleep(ctx, l.Config.Lifecycle.PruneEvery) != nil {
			return
		}
	}
}

func (l *lull) newID() flight.ID {
	return flight.ID(ulid.MustNew(ulid.Timestamp(l.clk.Now()), rand.Reader).String())
}

func newToken() shard.Token {
	var b [12]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return shard.Token(hex.EncodeToString(b[:]))
}
