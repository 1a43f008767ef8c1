package dev

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/index"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/receive"
	"github.com/lullhq/lull/internal/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// How much of one queue may wait or be held before the feeder waits: it bounds the memory. 20,000
// messages a second are held for the quiet window, the batching window and a write.
const (
	maxBacklog      = 250_000
	maxBacklogBytes = 256 << 20
)

// Options are what an engine is made of.
type Options struct {
	Config   *config.Config
	Clock    clock.Clock
	Sinks    map[string]sink.Sink // one for each sink of the configuration
	Journal  journal.Journal      // besides the engine's own ledger; nil for none
	Faults   *fault.Mix           // nil for none
	Inject   fault.Injector       // decides every I/O instead of Faults; nil for none
	Payloads index.Payloads       // nil for none
	Pollers  int                  // batches of a lane received at once; 0 for one, which splits bursts least
	Report   func(error)          // told what the services would log: failed batches, dead executions; nil for nobody
}

// Engine is a whole stack in one process.
type Engine struct {
	cfg      *config.Config
	clk      clock.Clock
	sources  *source.Set
	mix      *fault.Mix
	report   func(error)
	payloads index.Payloads
	pollers  int

	Shards   *memory.Shards
	Letters  *memory.Letters
	Schedule *memory.Schedule
	copies   *copies // of scheduled events
	Flights  *memory.Flights
	Meter    *Meter
	ledger   *Ledger
	bursts   *Debouncer
	notes    journal.Journal

	pipes    map[string]*pipe
	order    []string // the sinks' names, sorted
	turns    *slots   // for the turns that run
	invoked  atomic.Int64
	messages atomic.Int64
	bytes    atomic.Int64 // of their bodies
	events   atomic.Int64
	refused  atomic.Int64 // messages too large or empty for the queue
	wg       sync.WaitGroup
}

// pipe is what one sink has for itself.
type pipe struct {
	name             string
	sink             sink.Sink
	live, bulk, dead *memory.Queue
	machine          *memory.Machine
}

func (p *pipe) lane(l flight.Lane) *memory.Queue {
	if l == flight.Bulk {
		return p.bulk
	}
	return p.live
}

// New builds the stack. Nothing runs before Start.
func New(o Options) (*Engine, error) {
	sources, err := source.New(o.Config)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		cfg: o.Config, clk: o.Clock, sources: sources, mix: o.Faults, report: o.Report, payloads: o.Payloads,
		pollers: max(o.Pollers, 1),
		Shards:  memory.NewShards(), Letters: memory.NewLetters(), Schedule: memory.NewSchedule(),
		Flights: memory.NewFlights(o.Clock), Meter: &Meter{}, ledger: NewLedger(), bursts: NewDebouncer(),
		pipes: map[string]*pipe{}, turns: newSlots(),
	}
	e.copies = &copies{clk: e.clk, sources: sources, items: map[string]schedule.Item{}}
	if e.report == nil {
		e.report = func(error) {}
	}
	if o.Faults != nil {
		e.Meter.Next = o.Faults
	}
	if o.Inject != nil {
		e.Meter.Next = o.Inject
	}
	e.notes = journal.Tee{e.ledger}
	if o.Journal != nil {
		e.notes = journal.Tee{e.ledger, o.Journal}
	}
	for name := range o.Config.Sinks {
		s := o.Sinks[name]
		if s == nil {
			return nil, fmt.Errorf("sinks.%s: nothing was opened for it", name)
		}
		e.pipes[name] = e.pipe(name, s)
		e.order = append(e.order, name)
	}
	slices.Sort(e.order)
	return e, nil
}

func (e *Engine) pipe(name string, s sink.Sink) *pipe {
	q := e.cfg.Queues
	p := &pipe{name: name, sink: s}
	p.dead = memory.NewQueue(e.clk, memory.QueueSettings{
		Name: name + "-dead", Visibility: q.Visibility,
		Retention: q.DeadLetterRetention,
	})
	ingest := memory.QueueSettings{
		Visibility: q.Visibility, Retention: q.Retention, MaxReceiveCount: e.cfg.MaxReceiveCount(), DeadLetter: p.dead,
		MaxInFlight: maxBacklog, // a laptop has one queue where a stack of this rate has several
	}
	if e.mix != nil {
		ingest.Deliver = e.mix.Deliver
	}
	ingest.Name = name + "-live"
	p.live = memory.NewQueue(e.clk, ingest)
	ingest.Name = name + "-bulk"
	p.bulk = memory.NewQueue(e.clk, ingest)
	limit := memory.ExpressLimit
	if e.cfg.Flight.Kind == config.FlightStandard {
		limit = 0
	}
	p.machine = memory.NewMachine(e.clk, memory.MachineSettings{
		Limit: limit, Retries: 3, RetryAfter: e.cfg.AmbiguousRetry(name), Report: e.report,
	}, func(ctx context.Context, s flight.State) (flight.State, error) { return e.turn(ctx, p, s) })
	return p
}

// Start begins to poll the queues and to prune. It returns at once; Stop ends it.
func (e *Engine) Start(ctx context.Context) {
	for _, name := range e.order {
		p := e.pipes[name]
		e.poll(ctx, p, p.live, e.cfg.Queues.Live, flight.Live)
		e.poll(ctx, p, p.bulk, e.cfg.Queues.Bulk, flight.Bulk)
		dead := memory.NewMapping(p.dead, memory.MappingSettings{Batch: 10, Pollers: 2, Report: e.report},
			func(ctx context.Context, batch []queue.Message) ([]string, error) { return e.letters(ctx, p, batch) })
		e.wg.Go(func() { dead.Run(ctx) })
		e.wg.Go(func() { e.pruning(ctx, p) })
	}
}

// Stop waits for what runs after the context of Start has ended.
func (e *Engine) Stop() {
	for _, name := range e.order {
		e.pipes[name].machine.Close()
	}
	e.wg.Wait()
}

func (e *Engine) poll(ctx context.Context, p *pipe, q *memory.Queue, l config.Lane, lane flight.Lane) {
	m := memory.NewMapping(q, memory.MappingSettings{
		Batch: l.Batch, Window: l.Window,
		Pollers: min(e.pollers, l.MaxConcurrency), Report: e.report,
	},
		func(ctx context.Context, batch []queue.Message) ([]string, error) {
			return e.receive(ctx, p, lane, batch)
		})
	e.wg.Go(func() { m.Run(ctx) })
}

// begin starts an invocation: its I/O goes through the meter and the faults, its clock may be off.
func (e *Engine) begin(name string) (*fault.Invocation, clock.Clock) {
	inv := fault.NewInvocation(e.Meter, name, e.invoked.Add(1))
	if e.mix == nil {
		return inv, e.clk
	}
	e.mix.Begin(inv)
	return inv, clock.Skewed{Clock: e.clk, By: e.mix.Between(e.mix.Rates.Skew)}
}

var errKilled = errors.New("invocation was killed")

// end finishes an invocation and reports whether it lived.
func (e *Engine) end(inv *fault.Invocation) error {
	if e.mix != nil {
		e.mix.End(inv)
	}
	if inv.Killed() {
		return fmt.Errorf("%s: %w", inv.Name, errKilled)
	}
	return nil
}

func (e *Engine) receive(ctx context.Context, p *pipe, lane flight.Lane, batch []queue.Message) ([]string, error) {
	done := clock.Working(e.clk)
	defer done()
	inv, clk := e.begin("receive")
	ctx, cancel := e.clk.Deadline(ctx, e.cfg.Receive.Timeout)
	defer cancel()
	newID := e.newID
	if lane == flight.Bulk {
		newID = func() flight.ID {
			id := e.newID()
			e.turns.mark(id)
			return id
		}
	}
	h := receive.Handler{
		Shards: inv.Shards(e.Shards), Flights: inv.Flights(e.Flights), Launcher: inv.Launcher(e.launcher(p)),
		Ingest: inv.Queue(e.copies.watch(p.lane(lane), p.name, lane)), Dead: inv.Queue(p.dead),
		Schedule: inv.Schedule(e.Schedule), Sources: e.sources,
		Config: e.cfg, Sink: p.name, Lane: lane, Clock: clk, Journal: muted{inv, e.notes}, NewID: newID,
	}
	failed := h.Handle(ctx, batch)
	return failed, e.end(inv)
}

func (e *Engine) turn(ctx context.Context, p *pipe, s flight.State) (flight.State, error) {
	release, err := e.turns.take(ctx, s.Flight)
	if err != nil {
		return s, err
	}
	defer release()
	done := clock.Working(e.clk)
	defer done()
	e.Meter.Turns.Add(1)
	inv, clk := e.begin("index")
	ctx, cancel := e.clk.Deadline(ctx, e.cfg.Index.Timeout)
	defer cancel()
	h := index.Handler{
		Shards: inv.Shards(e.Shards), Flights: inv.Flights(e.Flights), Launcher: inv.Launcher(e.launcher(p)),
		Queues: map[flight.Lane]queue.Queue{flight.Live: inv.Queue(p.live), flight.Bulk: inv.Queue(p.bulk)},
		Dead:   inv.Queue(p.dead),
		Sink:   inv.Sink(p.sink), SinkName: p.name, Sources: e.sources, Payloads: e.payloads, Config: e.cfg, Clock: clk,
		Journal: muted{inv, e.notes}, NewToken: newToken, Jitter: mrand.Float64,
	}
	out, err := h.Turn(ctx, s)
	if killed := e.end(inv); killed != nil {
		return s, killed
	}
	e.turns.turned(s, out)
	return out, err
}

// launcher is the machine, which under the standard fault mix loses some starts and doubles others.
func (e *Engine) launcher(p *pipe) flight.Launcher {
	if e.mix == nil {
		return p.machine
	}
	return unreliable{e.mix, p.machine}
}

type unreliable struct {
	mix *fault.Mix
	to  flight.Launcher
}

func (u unreliable) Start(ctx context.Context, s flight.State) error {
	if u.mix.Chance(u.mix.Rates.FlightLost) {
		return nil
	}
	if u.mix.Chance(u.mix.Rates.FlightTwice) {
		if err := u.to.Start(ctx, s); err != nil {
			return err
		}
	}
	return u.to.Start(ctx, s)
}

// muted drops the notes of an invocation that was killed: nobody would have read them.
type muted struct {
	inv *fault.Invocation
	to  journal.Journal
}

func (m muted) Note(n journal.Note) {
	if !m.inv.Killed() {
		m.to.Note(n)
	}
}

func (e *Engine) newID() flight.ID {
	return flight.ID(ulid.MustNew(ulid.Timestamp(e.clk.Now()), rand.Reader).String())
}

func newToken() shard.Token {
	var b [12]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return shard.Token(hex.EncodeToString(b[:]))
}
