// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/pipeline/payload"
	"github.com/lullhq/lull/internal/pipeline/receive"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
)

// invocation is one run of a function. The I/O of the invocation is counted and may get injected
// failures, and its clock may be wrong. If the invocation is killed, its later notes are lost.
type invocation struct {
	*fault.Invocation
	clk   clock.Clock
	notes journal.Journal
}

var errKilled = errors.New("invocation was killed")

// invoke runs a function. The method returns an error if the function was killed.
func (e *Engine) invoke(name string, do func(inv invocation)) error {
	done := clock.Working(e.clk)
	defer done()
	v := fault.NewInvocation(&e.ledger.Meter, name, e.invoked.Add(1))
	v.Refuses = e.panel.Refuses
	inv := invocation{v, e.clk, muted{v, e.notes}}
	if e.mix == nil {
		do(inv)
	} else {
		e.mix.Begin(v)
		inv.clk = clock.Skewed{Clock: e.clk, By: e.mix.Between(e.mix.Rates.Skew)}
		do(inv)
		e.mix.End(v)
	}
	if v.Killed() {
		return fmt.Errorf("%s: %w", name, errKilled)
	}
	return nil
}

func (e *Engine) receive(ctx context.Context, p *pipe, l *lane, batch []queue.Message) (failed []string, err error) {
	err = e.invoke("receive", func(inv invocation) {
		ctx, cancel := e.clk.Deadline(ctx, e.cfg.Receive.Timeout)
		defer cancel()
		h := receive.Handler{
			Shards: inv.Shards(e.Shards), Flights: inv.Flights(e.Flights), Launcher: inv.Launcher(e.launcher(l)),
			Ingest: inv.Queue(counted{l.queue, e, p.name}), Dead: inv.Queue(p.dead), Schedule: inv.Schedule(e.Schedule),
			Sources: e.sources.At(p.name), Config: e.cfg, Sink: p.name, Lane: l.name, Clock: inv.clk,
			Journal: inv.notes,
			NewID:   flight.NewID,
			Objects: inv.Objects(e.opener(p.lanes[flight.Bulk].queue)),
			Bulk:    inv.Queue(counted{p.lanes[flight.Bulk].queue, e, p.name}),
		}
		if e.Archive != nil {
			h.Archive = inv.Archive(e.Archive)
		}
		failed = h.Handle(ctx, batch)
	})
	return failed, err
}

// maxLines is how many messages may wait in the bulk queue before more lines of objects are read.
// The limit is low because all messages are in memory.
const maxLines = 20_000

// opener returns a function that opens objects. The method first waits until at most maxLines
// messages are in the queue.
func (e *Engine) opener(lines *memory.Queue) objects.Open {
	return func(ctx context.Context, bucket, key, etag string, from int64) (io.ReadCloser, error) {
		for lines.Counts().Total() > maxLines {
			if err := e.clk.Sleep(ctx, 100*time.Millisecond); err != nil {
				return nil, fmt.Errorf("wait until the bulk lane has room: %w", err)
			}
		}
		return e.open(ctx, bucket, key, etag, from)
	}
}

func (e *Engine) turn(ctx context.Context, p *pipe, l *lane, s flight.State) (next flight.State, err error) {
	var bounds []*semaphore.Weighted
	if p.turns != nil {
		bounds = append(bounds, p.turns)
	}
	if l.name == flight.Bulk {
		bounds = append(bounds, e.bulkTurns)
	}
	for _, bound := range append(bounds, e.turns) {
		if err := bound.Acquire(ctx, 1); err != nil {
			return s, err
		}
		defer bound.Release(1) //nolint:revive // at most three semaphores, which the turn holds until it ends
	}
	e.ledger.Meter.Turns.Add(1)
	var failed error
	killed := e.invoke("index", func(inv invocation) {
		ctx, cancel := e.clk.Deadline(ctx, e.cfg.Index.Timeout)
		defer cancel()
		h := index.Handler{
			Shards: inv.Shards(e.Shards), Flights: inv.Flights(e.Flights), Launcher: inv.Launcher(e.launcher(l)),
			Queues: map[flight.Lane]queue.Queue{
				flight.Live: inv.Queue(p.lanes[flight.Live].queue), flight.Bulk: inv.Queue(p.lanes[flight.Bulk].queue),
			},
			Dead: inv.Queue(p.dead),
			Sink: inv.Sink(p.sink), SinkName: p.name, Reader: e.reader(p), Sources: e.sources.At(p.name),
			Payloads: e.payloads, Fetcher: e.payloads, Enrichers: e.enrich, Config: e.cfg,
			Clock: inv.clk, Journal: inv.notes, NewToken: rows.NewToken, Jitter: mrand.Float64,
		}
		next, failed = h.Turn(ctx, s)
	})
	e.disk.look(e.clk.Now())
	if killed != nil {
		return s, killed
	}
	return next, failed
}

// launcher returns the state machine of a lane. With a fault mix, the launcher loses some starts
// and doubles others.
func (e *Engine) launcher(l *lane) flight.Launcher {
	if e.mix == nil {
		return l.machine
	}
	return unreliable{e.mix, l.machine}
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

// muted discards the notes that an invocation makes after it was killed. On AWS, a killed function
// would make no notes either.
type muted struct {
	inv *fault.Invocation
	to  journal.Journal
}

func (m muted) Note(n journal.Note) {
	if !m.inv.Killed() {
		m.to.Note(n)
	}
}

// noBuckets is the loader of a process without buckets. noBuckets refuses to load any object.
func noBuckets(context.Context, string, string) ([]byte, error) {
	return nil, payload.Refused("this process has no buckets: start lull dev with --buckets DIR")
}
