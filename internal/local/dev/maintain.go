package dev

import (
	"context"
	"errors"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/dlq"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/prune"
	"github.com/lullhq/lull/internal/queue"
)

func (e *Engine) letters(ctx context.Context, p *pipe, batch []queue.Message) ([]string, error) {
	done := clock.Working(e.clk)
	defer done()
	inv, clk := e.begin("dlq")
	h := dlq.Handler{
		Shards: inv.Shards(e.Shards), Letters: inv.Letters(e.Letters), Sources: e.sources, Live: inv.Queue(p.live),
		Bulk: inv.Queue(p.bulk), Dead: inv.Queue(p.dead), Config: e.cfg, Sink: p.name, Clock: clk,
		Journal: muted{inv, e.notes},
	}
	failed := h.Handle(ctx, batch)
	return failed, e.end(inv)
}

// pruning runs prune at start and at its interval, as the rule does.
func (e *Engine) pruning(ctx context.Context, p *pipe) {
	for {
		if err := e.prune(ctx, p); err != nil {
			e.report(err)
		}
		if e.clk.Sleep(ctx, e.cfg.Lifecycle.PruneEvery) != nil {
			return
		}
	}
}

func (e *Engine) prune(ctx context.Context, p *pipe) error {
	done := clock.Working(e.clk)
	defer done()
	inv, clk := e.begin("prune")
	r := prune.Pruner{
		Shards: inv.Shards(e.Shards), Scanner: inv.Scanner(scanned{e.Shards, e.Meter}), Flights: inv.Flights(e.Flights),
		Letters:  inv.Letters(e.Letters),
		Schedule: inv.Schedule(e.Schedule), Launcher: inv.Launcher(e.launcher(p)),
		Live:   inv.Queue(e.copies.watch(p.live, p.name, flight.Live)),
		Bulk:   inv.Queue(e.copies.watch(p.bulk, p.name, flight.Bulk)),
		Config: e.cfg, Sink: p.name, Clock: clk, Journal: muted{inv, e.notes},
	}
	_, err := r.Run(ctx)
	_, forgot := e.copies.unsettled(ctx, e.Shards)
	return errors.Join(err, forgot, e.end(inv))
}
