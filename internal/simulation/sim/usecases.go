// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/pipeline/dlq"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/pipeline/receive"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Hooks change the use cases of a simulated run. Tests make mutants of the protocol with Hooks, so
// that the product needs no flag. A hook gets the handler of each invocation before it runs, and
// may change all its seams. Nil fields do nothing.
type Hooks struct {
	Receive func(*receive.Handler)
	Index   func(*index.Handler)
	Dlq     func(*dlq.Handler)
	Desk    func(*redrive.Service)
	Prune   func(*prune.Pruner)
	// Answer changes the answer of receive.
	Answer func(h *receive.Handler, batch []queue.Message, failed []string) []string
}

// hooked calls a hook with a handler, if there is a hook.
func hooked[T any](hook func(*T), handler *T) {
	if hook != nil {
		hook(handler)
	}
}

// noObjects replaces the buckets. A message about an object with many documents becomes a dead
// letter.
func noObjects(context.Context, string, string, string, int64) (io.ReadCloser, error) {
	return nil, fmt.Errorf("%w: there are no buckets here", objects.ErrRefused)
}

// shards returns the table as an invocation sees it.
func (w *World) shards(v *invocation) shard.Store {
	return v.Shards(tableClient{w.table, v})
}

// sink returns the sink of a pipe as an invocation sees it.
func (w *World) sink(v *invocation, p *pipe) sink.Sink {
	return v.Sink(engineClient{engineReader{v, p.engine}})
}

func (w *World) receive(p *pipe, lane flight.Lane) func(context.Context, *invocation, []queue.Message) []string {
	return func(ctx context.Context, v *invocation, batch []queue.Message) []string {
		v.compute(ctx, time.Duration(len(batch))*eventCPU)
		h := receive.Handler{
			Shards: w.shards(v), Flights: v.Flights(w.flights),
			Launcher: v.Launcher(p.machine),
			Ingest:   v.Queue(p.lane(lane)), Dead: v.Queue(p.dead),
			Schedule: v.Schedule(w.schedule),
			Sources:  w.sources.At(p.name), Config: w.cfg, Sink: p.name, Lane: lane, Clock: v.clock, Journal: v,
			NewID: w.newID, Parallel: v.parallel(),
			Objects: noObjects, Bulk: v.Queue(p.lane(flight.Bulk)),
		}
		if w.archive != nil {
			h.Archive = v.Archive(w.archive)
		}
		hooked(w.options.Hooks.Receive, &h)
		failed := h.Handle(ctx, batch)
		if hook := w.options.Hooks.Answer; hook != nil {
			failed = hook(&h, batch, failed)
		}
		return failed
	}
}

func (w *World) turn(p *pipe) func(context.Context, *invocation, flight.State) (flight.State, error) {
	return func(ctx context.Context, v *invocation, s flight.State) (flight.State, error) {
		h := index.Handler{
			Shards: w.shards(v), Flights: v.Flights(w.flights),
			Launcher: v.Launcher(p.machine),
			Queues: map[flight.Lane]queue.Queue{
				flight.Live: v.Queue(p.live), flight.Bulk: v.Queue(p.bulk),
			},
			Dead: v.Queue(p.dead), Sink: w.sink(v, p),
			Reader: engineReader{v, p.engine}, SinkName: p.name, Sources: w.sources.At(p.name),
			Payloads: objectClient{v}, Fetcher: objectClient{v}, Enrichers: w.enrichers(v, p),
			Config: w.cfg, Clock: v.clock, Journal: v, NewToken: w.newToken, Jitter: w.dice.Float64,
			Parallel: v.parallel(),
		}
		w.mixed(&h)
		hooked(w.options.Hooks.Index, &h)
		s = w.handed(s)
		v.open, v.pipe = s.Outage, p
		w.watch(v, Step{What: Turned, Flight: s.Flight})
		return h.Turn(ctx, s)
	}
}

func (w *World) dlq(p *pipe) func(context.Context, *invocation, []queue.Message) []string {
	return func(ctx context.Context, v *invocation, batch []queue.Message) []string {
		h := dlq.Handler{
			Shards: w.shards(v), Letters: v.DeadLetters(w.letters),
			Sources: w.sources.At(p.name),
			Live:    v.Queue(p.live), Bulk: v.Queue(p.bulk),
			Dead:   v.Queue(p.dead),
			Config: w.cfg, Sink: p.name, Clock: v.clock, Journal: v, Parallel: v.parallel(),
		}
		hooked(w.options.Hooks.Dlq, &h)
		return h.Handle(ctx, batch)
	}
}

// pruneTimeout is the time-out of the function prune.
const pruneTimeout = time.Minute

// prune runs prune for one sink. The parts of a prune run one after the other, because prune has
// enough time.
func (w *World) prune(p *pipe) {
	if w.halted {
		return
	}
	w.invoke("prune", pruneTimeout, func(ctx context.Context, v *invocation) {
		r := prune.Pruner{
			Shards: w.shards(v), Scanner: v.Scanner(tableClient{w.table, v}),
			Flights: v.Flights(w.flights),
			Letters: v.DeadLetters(w.letters), Schedule: v.Schedule(w.schedule),
			Live: v.Queue(p.live),
			Bulk: v.Queue(p.bulk), Launcher: v.Launcher(p.machine), Config: w.cfg,
			Sink:  p.name,
			Fired: epoch.Add(v.began),
			Clock: v.clock, Journal: v, NewToken: w.newToken, NewID: w.newID,
			Parallel: v.parallel(),
		}
		hooked(w.options.Hooks.Prune, &r)
		_, v.failed = r.Run(ctx) // the next run tries again what failed
	}, func(error) {})
}

// patience is the longest time for one run of a command.
const patience = 10 * time.Minute

// redrive is an operator who redrives every dead letter.
func (w *World) redrive() {
	w.operator++
	w.invoke(operators, patience, func(ctx context.Context, v *invocation) {
		desk := redrive.Service{
			Shards: w.shards(v), Letters: v.DeadLetters(w.letters),
			Flights: v.Flights(w.flights),
			Queues: func(sink string, lane flight.Lane) queue.Queue {
				if p := w.pipeNamed(sink); p != nil {
					return v.Queue(p.lane(lane))
				}
				return nil
			},
			Config: w.cfg, Clock: v.clock, Journal: v,
		}
		hooked(w.options.Hooks.Desk, &desk)
		for o := (redrive.Order{How: redrive.How{By: "the simulator"}}); ; { // busy dead letters are tried again
			step, err := desk.Redrive(ctx, o)
			if err != nil || step.Next == nil {
				return
			}
			o.From = *step.Next
		}
	}, func(error) { w.operator-- })
}

// ulidOf returns a ULID for a time. made is the number of earlier ids, which makes the id unique.
func ulidOf(now time.Time, made *int) string {
	*made++
	var id ulid.ULID
	_ = id.SetTime(ulid.Timestamp(now)) // fails only in the year 10889
	for i, n := 15, *made; i > 5; i, n = i-1, n>>8 {
		id[i] = byte(n)
	}
	return id.String()
}
