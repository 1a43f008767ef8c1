// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/pipeline/payload"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/commitfeed"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// maxBacklog and maxBacklogBytes limit the memory for the messages of one queue, waiting or in
// flight. If a queue reaches a limit, Publish waits. The limits are enough for 20,000 messages a
// second that are held for the quiet window, the batching window and a write.
const (
	maxBacklog      = 250_000
	maxBacklogBytes = 256 << 20
)

// Options contains the parts and the settings of an engine.
type Options struct {
	Config  *config.Config
	Clock   clock.Clock
	Sinks   map[string]sink.Sink // by name: every sink of the configuration
	Journal journal.Journal      // gets all notes, in addition to the engine's ledger; may be nil
	Faults  *fault.Mix           // nil for none
	Inject  fault.Injector       // decides the result of every I/O, instead of Faults; may be nil
	// Objects loads S3 objects that messages and events refer to; nil if there are no buckets.
	Objects payload.Objects
	// Open opens S3 objects that contain many documents; nil if there are no buckets.
	Open objects.Open
	// Enrichers call the enrichment services, by collection. A collection may have none.
	Enrichers map[shard.Collection]enrich.Caller
	// Headers returns the headers of requests that fetch documents; nil if no source has headers.
	Headers func(source.Headers) (payload.HeadersOf, error)
	Pollers int // how many receivers a lane has; 0 means one, with which a burst is least often split
	// called with errors that AWS would log, such as failed batches and failed executions; may be
	// nil
	Report func(error)
	// Folder keeps the state between runs; nil means that no state is kept. If Folder is set, call
	// [Engine.Load].
	Folder *Folder
	// Step is the time that one point of [Engine.Recent] covers; 0 means a second.
	Step time.Duration
	// Trouble is called with an error when a write to disk fails, and with nil when writes succeed
	// again. Trouble may be nil.
	Trouble func(error)
}

// maxTurns is how many turns run at the same time, like the concurrency of the index function on
// AWS. More turns would only delay each other at the single search index. maxBulkTurns is the part
// of them that the bulk lane may use, so that a resync never delays a turn of the live lane.
const (
	maxTurns     = 16
	maxBulkTurns = 12
)

// Engine is a whole stack of lull in one process.
type Engine struct {
	cfg      *config.Config
	clk      clock.Clock
	sources  *source.Set
	mix      *fault.Mix
	panel    *fault.Panel
	payloads *payload.Loader
	enrich   map[shard.Collection]enrich.Caller
	open     objects.Open
	report   func(error)
	pollers  int
	noted    sync.Mutex
	places   feed.Places // where each message is in the input

	Shards   *memory.Shards
	Letters  *memory.DeadLetters
	Schedule *memory.Schedule
	Flights  *memory.Flights
	Archive  *memory.Archive // nil if the settings have no archive
	Feed     *commitfeed.Hub // the feed of commits; nil if the settings have no feed
	ledger   *ledger.Ledger
	notes    journal.Journal

	pipes     map[string]*pipe
	order     []string // the names of the sinks, sorted
	turns     *semaphore.Weighted
	bulkTurns *semaphore.Weighted // limits the turns of the bulk lane, in addition to turns
	disk      disk
	folder    *Folder // nil for none
	invoked   atomic.Int64
	refused   atomic.Int64 // how many messages no queue accepted, because they were too large or empty
	wg        sync.WaitGroup

	recovering sync.Mutex
	recovered  time.Time // see [fault.Recovery]
}

// pipe contains the queues and the executions of one sink.
type pipe struct {
	name  string
	sink  sink.Sink
	lanes map[flight.Lane]*lane
	dead  *memory.Queue
	turns *semaphore.Weighted // nil for no limit
}

// lane is a queue and the executions of its flights.
type lane struct {
	name     flight.Lane
	settings config.Lane
	queue    *memory.Queue
	machine  *memory.Machine
}

// lane returns the bulk lane for flight.Bulk, and the live lane for every other value.
func (p *pipe) lane(l flight.Lane) *lane {
	if l == flight.Bulk {
		return p.lanes[flight.Bulk]
	}
	return p.lanes[flight.Live]
}

// queues returns the queues of the two lanes and the dead-letter queue.
func (p *pipe) queues() []*memory.Queue {
	return []*memory.Queue{p.lane(flight.Live).queue, p.lane(flight.Bulk).queue, p.dead}
}

// New builds the stack. No work runs before Start.
func New(o Options) (*Engine, error) {
	sources, err := source.New(o.Config)
	if err != nil {
		return nil, err
	}
	load := o.Objects
	if load == nil {
		load = noBuckets
	}
	if o.Open == nil {
		o.Open = func(context.Context, string, string, string, int64) (io.ReadCloser, error) {
			_, err := noBuckets(context.Background(), "", "")
			return nil, fmt.Errorf("%w: %w", objects.ErrRefused, err)
		}
	}
	sources = sources.WithLoader(source.Loader(load))
	e := &Engine{
		cfg: o.Config, clk: o.Clock, sources: sources, mix: o.Faults, report: o.Report,
		enrich: o.Enrichers, open: o.Open,
		pollers: max(o.Pollers, 1),
		Shards:  memory.NewShards(), Letters: memory.NewDeadLetters(), Schedule: memory.NewSchedule(),
		Flights: memory.NewFlights(o.Clock), ledger: ledger.New(o.Step), pipes: map[string]*pipe{},
		turns: semaphore.NewWeighted(maxTurns), bulkTurns: semaphore.NewWeighted(maxBulkTurns),
	}
	if keep := o.Config.Archive.Keep; keep > 0 {
		e.Archive = memory.NewArchive(o.Clock, keep)
	}
	if o.Config.CommitFeed {
		e.Feed = new(commitfeed.Hub)
		e.Shards.Watch = func(before, after shard.Row) {
			if told, ok := commitfeed.Of(before, after, e.clk.Now()); ok {
				e.Feed.Publish(told)
			}
		}
	}
	e.payloads, err = payload.New(load, e.cfg.Payload.HTTPHosts, payload.MaxObject).Pulling(e.cfg.Sources, o.Headers)
	if err != nil {
		return nil, err
	}
	if e.report == nil {
		e.report = func(error) {}
	}
	next := o.Inject
	if next == nil && o.Faults != nil {
		next = o.Faults
	}
	e.panel = fault.NewPanel(e.clk, next)
	e.ledger.Meter.Next = e.panel
	e.notes = journal.Tee{e.ledger}
	if o.Journal != nil {
		e.notes = journal.Tee{e.ledger, o.Journal}
	}
	for name := range o.Config.Sinks {
		s := o.Sinks[name]
		if s == nil {
			return nil, fmt.Errorf("sinks.%s: lull dev did not open it", name)
		}
		e.pipes[name] = e.pipe(name, s)
		e.order = append(e.order, name)
	}
	slices.Sort(e.order)
	e.disk = disk{say: o.Trouble, note: e.notes.Note}
	if o.Folder != nil {
		e.folder = o.Folder
		e.disk.keepers = append(e.disk.keepers, o.Folder)
		if err := e.keep(o.Folder); err != nil {
			return nil, err
		}
	}
	for _, name := range e.order {
		if k, ok := o.Sinks[name].(Keeper); ok {
			e.disk.keepers = append(e.disk.keepers, k)
		}
	}
	return e, nil
}

func (e *Engine) pipe(name string, s sink.Sink) *pipe {
	q := e.cfg.Queues
	p := &pipe{name: name, sink: s, lanes: map[flight.Lane]*lane{}}
	if most := config.IndexConcurrency(e.cfg.Sinks[name]); most > 0 {
		p.turns = semaphore.NewWeighted(int64(most))
	}
	p.dead = memory.NewQueue(e.clk, memory.QueueSettings{
		Name: name + "-dead", Visibility: q.Visibility, Retention: q.DeadLetterRetention,
	})
	p.lanes[flight.Live] = e.lane(p, flight.Live, q.Live)
	p.lanes[flight.Bulk] = e.lane(p, flight.Bulk, q.Bulk)
	return p
}

func (e *Engine) lane(p *pipe, name flight.Lane, settings config.Lane) *lane {
	q := e.cfg.Queues
	ingest := memory.QueueSettings{
		Name: p.name + "-" + string(name), Visibility: q.Visibility, Retention: q.Retention,
		MaxReceiveCount: e.cfg.Retry.MaxReceiveCount(), DeadLetter: p.dead,
		// higher than the limit of SQS, because a deployed stack with such a rate has several
		// queues
		MaxInFlight: maxBacklog,
	}
	if e.mix != nil {
		ingest.Deliver = e.mix.Deliver
	}
	executions := memory.MachineSettings{
		Name: ingest.Name, Retries: 3, RetryAfter: e.cfg.AmbiguousRetry(p.name), Report: e.report,
	}
	l := &lane{name: name, settings: settings, queue: memory.NewQueue(e.clk, ingest)}
	l.machine = memory.NewMachine(e.clk, executions, func(ctx context.Context, s flight.State) (flight.State, error) {
		return e.turn(ctx, p, l, s)
	})
	return l
}

// Start begins to poll the queues, to prune and to verify. Start returns at once. Stop waits until
// all work has ended.
func (e *Engine) Start(ctx context.Context) {
	e.resume(ctx)
	for _, name := range e.order {
		p := e.pipes[name]
		for _, l := range p.lanes {
			pollers := l.settings.Concurrency(e.pollers)
			e.poll(ctx, l.queue, l.settings.Batch, l.settings.Window, pollers,
				func(ctx context.Context, batch []queue.Message) ([]string, error) {
					return e.receive(ctx, p, l, batch)
				})
		}
		e.poll(ctx, p.dead, 10, 0, 2,
			func(ctx context.Context, batch []queue.Message) ([]string, error) { return e.judgeDead(ctx, p, batch) })
		e.wg.Go(func() { e.pruning(ctx, p) })
	}
	if len(e.cfg.Verified()) > 0 {
		e.wg.Go(func() { e.verifying(ctx) })
	}
}

func (e *Engine) poll(ctx context.Context, q *memory.Queue, batch int, window time.Duration, pollers int,
	handle memory.Handler,
) {
	m := memory.NewMapping(q, memory.MappingSettings{
		Batch: batch, Window: window, Pollers: pollers, Report: e.report,
	}, handle)
	e.wg.Go(func() { m.Run(ctx) })
}

// Stop closes the state machines and waits for all work to end. End the context of Start first.
func (e *Engine) Stop() {
	for _, p := range e.pipes {
		for _, l := range p.lanes {
			l.machine.Close()
		}
	}
	e.wg.Wait()
}
