// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// Options are the settings and the parts of a World.
type Options struct {
	Config   *config.Config // must be valid
	Seed     uint64
	Faults   Level
	Rates    *Rates // replaces the rates that Faults and the seed give; nil for no replacement
	Upstream Upstream
	Pollers  int // pollers of each lane; 0 for a random number
	// MostPollers is the most pollers under load, within the concurrency of the lane. 0 means no
	// more than Pollers.
	MostPollers int
	Strain      Strain
	Timeline    bool            // record what happens in each second: see [Result.Timeline]
	Journal     journal.Journal // gets every note of the use cases; may be nil
	Story       io.Writer       // gets the story of the run, step by step; may be nil
	Watch       func(Step)      // is called for each change of rows, messages and the sink; may be nil
	Hooks       Hooks
	// Listen is called with the notes of each invocation, by the invocation's number, and with nil
	// at its end. A caller makes logs and metrics from them. Listen may be nil.
	Listen  func(function string, invocation int64, at time.Time, n *journal.Note)
	Monitor Monitor // nil for no monitor
	// Processor makes the functions take processor time, which depends on their memory. Without
	// Processor, functions only wait for services.
	Processor bool
	// GoOn is called every second of virtual time. If it returns false, the run stops. If GoOn is
	// nil, the run continues to its end.
	GoOn func(now time.Duration) bool
}

// World is one simulated run: a stack and the services around it.
type World struct {
	scheduler
	options Options
	cfg     *config.Config
	dice    dice
	rates   Rates
	drawn   Rates // the rates before the injected failures ended
	outages []outage
	// settings is the period in which the engine's settings are wrong; nil for no such period.
	settings *settingsFault
	calm     bool // the injected failures have ended
	poisons  map[version]poison
	objects  map[string]Object // the current objects to which events refer
	refs     map[string]string // the reference of a document, by the document's id
	places   feed.Places       // the places of the messages
	lags     bool              // loads may show an older state than the newest

	beyondGuard bool // clocks differ by more than the guard, so violations that only the guard prevents may happen

	sources  *source.Set
	table    *table
	flights  flights
	archive  *archived // nil if the settings ask for no archive
	letters  letters
	schedule planned
	pipes    []*pipe
	queues   []*sqsQueue // the queues of all pipes

	invoked   int64
	live      map[int64]*invocation
	decisions int
	operator  int  // number of running commands of the operator
	loses     bool // data may be lost that only an operator can restore
	halted    bool
	halts     int // how often the functions were stopped
	named     int // number of ids and tokens so far
	coverage  coverage
	foreign   map[flight.ID]bool // manifests of a newer build
	freshness []time.Duration
	freshBy   map[shard.Collection][]time.Duration
	freshIn   map[string][]time.Duration // freshness by sink
	added     map[string]time.Duration   // since when a sink gets messages; missing if from the beginning

	oracle   *oracle
	trace    trace
	timeline timeline
	worst    Extremes
	counts   Counts
	ended    bool
	stopped  bool // GoOn stopped the run
}

// pipe has the queues, the executions and the functions of one sink.
type pipe struct {
	name             string
	versions         bool
	live, bulk, dead *sqsQueue
	mappings         []*mapping
	machine          *machine
	engine           *engine
	filled           time.Duration // until when the sent documents fill the time at the sink's ceiling
}

func (p *pipe) lane(l flight.Lane) *sqsQueue {
	if l == flight.Bulk {
		return p.bulk
	}
	return p.live
}

// forgetsDeletes is how long search engines remember the version of a deleted document.
const forgetsDeletes = time.Minute

// New returns a World in which nothing has happened yet.
func New(o Options) (*World, error) {
	sources, err := source.New(o.Config)
	if err != nil {
		return nil, err
	}
	cfg := o.Config.Whole()                   // the load is the stack's own, whatever the ids of its documents are
	cfg.DeadLetters = config.DeadLettersQueue // a run lists dead letters even if the settings drop them
	w := &World{
		options: o, cfg: cfg, dice: newDice(o.Seed, 0x6c756c6c), sources: sources, live: map[int64]*invocation{},
		poisons: maps.Clone(o.Upstream.poisons), objects: map[string]Object{}, refs: map[string]string{},
		coverage: coverage{}, foreign: map[flight.ID]bool{},
		freshBy: map[shard.Collection][]time.Duration{}, freshIn: map[string][]time.Duration{},
	}
	if keep := w.cfg.Archive.Keep; keep > 0 {
		w.archive = &archived{memory.NewArchive(trueClock{&w.scheduler}, keep), w}
	}
	w.flights = flights{memory.NewFlights(trueClock{&w.scheduler}), w}
	w.letters, w.schedule = letters{memory.NewDeadLetters(), w}, planned{memory.NewSchedule(), w}
	w.counts = newCounts()
	w.trace = newTrace(w, o.Story)
	w.oracle = newOracle(w)
	w.table = newTable(w)
	w.draw()
	w.plan(o.Strain)
	w.timeline = timeline{w: w, on: o.Timeline}
	w.after(0, w.timeline.begin)
	for _, name := range slices.Sorted(maps.Keys(o.Config.Sinks)) {
		w.pipes = append(w.pipes, w.pipe(name))
	}
	if o.GoOn != nil {
		w.after(0, w.ask)
	}
	for _, c := range o.Upstream.Objects {
		w.refs[c.Doc] = c.ref()
		w.after(c.At, func() { w.change(c) })
	}
	for _, a := range o.Upstream.Arrivals {
		w.places.Note(feed.Timed{Outgoing: a.Message, Where: a.Where})
		w.after(a.At, func() { w.publish(a.Message) })
	}
	return w, nil
}

// ask calls GoOn every second.
func (w *World) ask() {
	w.stopped = !w.options.GoOn(w.now)
	w.after(time.Second, w.ask)
}

// draw picks the random failure rates of this simulated run.
func (w *World) draw() {
	versions := true
	for name := range w.cfg.Sinks {
		versions = versions && w.cfg.Sinks[name].Capabilities().Versions
	}
	guard := w.cfg.Index.Guard
	switch o := &w.options; {
	case o.Rates != nil:
		w.rates = *o.Rates
	case o.Faults == Standard:
		w.rates = StandardRates()
	case o.Faults == Swarm:
		w.rates = w.dice.swarm(guard, versions)
		w.outages = w.dice.outages(w.options.Upstream.Calm)
		w.drawAnswers()
	default:
		w.rates = quietRates()
	}
	w.drawn = w.rates
	w.beyondGuard = 2*w.rates.Skew+w.rates.LateKill > guard
}

func (w *World) pipe(name string) *pipe {
	q, cfg := w.cfg.Queues, w.cfg
	p := &pipe{name: name, versions: cfg.Sinks[name].Capabilities().Versions}
	p.dead = newQueue(w, name, "dead", nil, q.DeadLetterRetention)
	p.live, p.bulk = newQueue(w, name, "live", p.dead, q.Retention), newQueue(w, name, "bulk", p.dead, q.Retention)
	settle := cfg.Sinks[name].Capabilities().ApplyDelay
	forget := time.Duration(0)
	if p.versions {
		forget = forgetsDeletes
	}
	p.engine = newEngine(w, name, p.versions, settle, forget)
	p.machine = &machine{
		w: w, again: cfg.AmbiguousRetry(name), turn: w.turn(p), most: config.IndexConcurrency(cfg.Sinks[name]),
	}
	for _, l := range []struct {
		q    *sqsQueue
		lane config.Lane
		name flight.Lane
	}{{p.live, q.Live, flight.Live}, {p.bulk, q.Bulk, flight.Bulk}} {
		pollers := w.options.Pollers
		if pollers == 0 {
			pollers = 1 + w.dice.IntN(5)
		}
		p.mappings = append(p.mappings, newMapping(&mapping{
			w: w, q: l.q, name: "receive", batch: l.lane.Batch, window: l.lane.Window, timeout: cfg.Receive.Timeout,
			most: l.lane.Concurrency(w.options.MostPollers), handle: w.receive(p, l.name),
		}, l.lane.Concurrency(pollers)))
	}
	p.mappings = append(p.mappings, newMapping(&mapping{
		w: w, q: p.dead, name: "dlq", batch: 10, timeout: cfg.Receive.Timeout, most: 2, handle: w.dlq(p),
	}, 2))
	return p
}

// publish sends one message as an upstream would: to the queues of its collection's sinks, and
// resyncs to the bulk lane.
func (w *World) publish(out queue.Outgoing) {
	to := feed.RouteOf(w.cfg, w.sources, queue.Message{
		Body: out.Body, Attributes: out.Attributes, Sent: epoch.Add(w.now),
	})
	w.oracle.recordPublished(to)
	for _, sink := range to.Sinks() {
		if w.now < w.added[sink] {
			continue
		}
		w.counts.Messages++
		w.counts.Events += len(to.Events)
		if p := w.pipeNamed(sink); p != nil && p.lane(to.Lane).send(out) != nil {
			w.counts.Unsent++
		}
	}
}

// hold returns the longest time that a window of the settings holds a message.
func (w *World) hold() time.Duration {
	var longest time.Duration
	for name := range w.cfg.Sinks {
		longest = max(longest, w.cfg.LongestHold(name))
	}
	return longest
}

func (w *World) timing(doc shard.DocID) shard.Timing { return w.cfg.Timing(doc.Collection()) }

func (w *World) pipeOf(doc shard.DocID) *pipe {
	return cmp.Or(w.pipeNamed(w.cfg.SinkOf(doc)), w.pipes[0])
}

// pipeNamed returns the pipe of a sink, or nil if there is none.
func (w *World) pipeNamed(sink string) *pipe {
	for _, p := range w.pipes {
		if p.name == sink {
			return p
		}
	}
	return nil
}

// newToken and newID return unique values, which are the same in every run of a seed.
func (w *World) newToken() shard.Token {
	w.named++
	return shard.Token(fmt.Sprintf("token-%d", w.named))
}

func (w *World) newID(now time.Time) flight.ID { return flight.ID(ulidOf(now, &w.named)) }

// killers reports whether one of the documents makes every request fail.
func (w *World) killers(ops []sink.Op) bool {
	for _, op := range ops {
		if w.poisons[version{op.Doc.Plain(), op.Key}] == kills {
			return true
		}
	}
	return false
}

var _ fault.Injector = (*World)(nil)
