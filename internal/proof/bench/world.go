// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/simulation/price"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// Memory sizes of the functions, as in infra. The peers' functions have the size of receive.
var (
	receiveMegabytes = names.Receive.Megabytes()
	indexMegabytes   = names.Index.Megabytes()
	pruneMegabytes   = names.Prune.Megabytes()
)

const (
	// peerTimeout is the time-out of the peers' functions. The time-out is long enough to process a
	// batch of a thousand messages one by one.
	peerTimeout = 60 * time.Second
	// peerParallel limits how many messages of a batch a peer processes in parallel. lull has the
	// same limit for writes. Powertools and GOV.UK process messages one by one, so this limit
	// favours the peers.
	peerParallel = 32
	// callParallel limits the batch calls of SQS in parallel, as internal/aws/sqs does.
	callParallel = 16
	// forgetAfter is index.gc_deletes: how long the engine remembers the version of a deleted
	// document. lull's template sets one hour. The engine's own default is a minute.
	forgetAfter = time.Hour
)

// World is the simulated environment of a contender.
type World struct {
	Scenario Scenario
	Trace    *Trace
	Config   *config.Config
	Queue    *memory.Queue
	Sink     sink.Sink
	Meter    *Meter

	clk     clock.Clock
	watch   *watched
	mix     *fault.Mix
	invoked atomic.Int64
	running atomic.Int64 // number of running invocations
	busy    func() int   // returns the number of executions that have not ended; nil if there are none

	// The following fields are an operator's actions, in addition to letting the source send again.
	images    []func() (restore func())       // backups of the contender's tables
	reconcile func(ctx context.Context) error // compares the tables with the sink, if the contender can do that
	newEpoch  func()                          // tells the contender that the source's counter went back

	stop func() // ends the work of the contender that does not end with ctx
	wg   sync.WaitGroup
	t    testing.TB
}

func newWorld(t testing.TB, s Scenario, trace *Trace, c Contender) *World {
	cfg := s.config(t)
	w := &World{t: t, Scenario: s, Trace: trace, Config: cfg, clk: clock.System{}}
	w.reconcile, w.newEpoch, w.stop = func(context.Context) error { return nil }, func() {}, func() {}
	var rates fault.Rates
	if s.Faults {
		rates = fault.Standard()
	}
	w.mix = fault.NewMix(rates, s.Shape.Seed)
	w.Meter = newMeter(w.clk, newLatency(s.Shape.Seed), w.mix)
	set := memory.QueueSettings{
		Name: "live", Visibility: 6 * peerTimeout, Retention: cfg.Queues.Retention, Deliver: w.mix.Deliver,
	}
	if c.Visibility != nil {
		set.Visibility = c.Visibility(cfg)
	}
	w.Queue = memory.NewQueue(w.clk, set)
	engine := memorysink.New(w.clk, memorysink.Settings{Versions: c.Fenced, ForgetAfter: forgetAfter})
	w.watch = newWatched(w.clk, w.Meter, engine, trace)
	w.Sink = w.watch
	return w
}

// image takes a backup of the contender's tables. The returned function restores it.
func (w *World) image() (restore func()) {
	var restores []func()
	for _, image := range w.images {
		restores = append(restores, image())
	}
	return func() {
		for _, r := range restores {
			r()
		}
	}
}

// report handles errors of background work. Under injected failures there are many.
func (w *World) report(err error) {
	if !w.Scenario.Faults {
		w.t.Error(err)
	}
}

// play sends the trace and waits until no message remains.
func (w *World) play(ctx context.Context, delay time.Duration) error {
	begin := w.clk.Now()
	acts := w.Trace.Acts
	for _, e := range w.Trace.Events {
		for ; len(acts) > 0 && acts[0].At <= e.At; acts = acts[1:] {
			if err := w.clk.Sleep(ctx, acts[0].At-w.clk.Now().Sub(begin)); err != nil {
				return err
			}
			acts[0].Do(ctx, w)
		}
		if err := w.clk.Sleep(ctx, e.At-w.clk.Now().Sub(begin)); err != nil {
			return err
		}
		w.watch.arrive(e)
		if err := queue.ErrorAt(w.Queue.Send(ctx, []queue.Outgoing{{Body: e.body(), Delay: delay}}), 0); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	for !w.idle() {
		if w.clk.Now().Sub(begin) > w.Trace.Events[len(w.Trace.Events)-1].At+playLimit {
			return fmt.Errorf("%d messages remain after %s", w.Queue.Counts().Total(), playLimit)
		}
		if err := w.clk.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) idle() bool {
	return w.Queue.Counts().Total() == 0 && w.running.Load() == 0 && (w.busy == nil || w.busy() == 0)
}

// playLimit is how long a contender may work after the last event. After that time the contender
// counts as hanging.
const playLimit = 2 * time.Hour

// killed is the error of an invocation that was killed.
type killed struct{ name string }

func (k killed) Error() string { return k.name + " was killed" }

// invoke runs f as a Lambda function. The function starts after a latency, has a time-out and a
// share of a processor core, and is billed.
func (w *World) invoke(ctx context.Context, name string, megabytes int, timeout time.Duration,
	f func(ctx context.Context, v *fault.Invocation, clk clock.Clock),
) error {
	w.running.Add(1)
	defer w.running.Add(-1)
	if err := w.clk.Sleep(ctx, w.Meter.lat.draw(invokeLatency)); err != nil {
		return err
	}
	v := fault.NewInvocation(w.Meter, name, w.invoked.Add(1))
	w.mix.Begin(v)
	clk := clock.Skewed{Clock: w.clk, By: w.mix.Between(w.mix.Rates.Skew)}
	began := w.clk.Now()
	w.Meter.begin(v, megabytes)
	alive, cancel := w.clk.Deadline(ctx, timeout)
	w.work(alive, v, invocationCPU)
	f(alive, v, clk)
	cancel()
	w.Meter.end(v, w.clk.Now().Sub(began), megabytes)
	w.mix.End(v)
	if v.Killed() {
		return killed{name}
	}
	return nil
}

// work uses up the invocation's processor time.
func (w *World) work(ctx context.Context, v *fault.Invocation, cpu time.Duration) {
	_ = w.clk.Sleep(ctx, w.Meter.compute(v, cpu)) // the next call notices a time-out
}

// handler is a contender's function that the event source mapping invokes. A handler returns the
// ids of messages that must stay in the queue.
type handler func(ctx context.Context, v *fault.Invocation, clk clock.Clock, batch []queue.Message) []string

// poll runs the event source mapping until ctx ends.
func (w *World) poll(ctx context.Context, name string, timeout time.Duration, h handler) {
	l := w.Config.Queues.Live
	set := memory.MappingSettings{
		Batch: l.Batch, Window: l.Window, Pollers: w.Scenario.Pollers, Report: w.report,
	}
	m := memory.NewMapping(w.Queue, set, func(ctx context.Context, batch []queue.Message) (failed []string, err error) {
		w.received(batch, l.Window)
		err = w.invoke(ctx, name, receiveMegabytes, timeout,
			func(ctx context.Context, v *fault.Invocation, clk clock.Clock) {
				w.work(ctx, v, time.Duration(len(batch))*messageCPU)
				failed = append([]string{}, h(ctx, v, clk, batch)...) // empty, never nil: an answer
			})
		if err == nil {
			calls := (len(batch) - len(failed) + queue.MaxEntries - 1) / queue.MaxEntries
			w.Meter.count(func(c *Counts, u *price.Usage) {
				c.Deletes += calls
				u.QueueRequests += float64(calls)
			})
		}
		return failed, err
	})
	w.wg.Go(func() { m.Run(ctx) })
}
