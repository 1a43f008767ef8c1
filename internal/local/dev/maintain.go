// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"time"

	"github.com/lullhq/lull/internal/operator/verify"
	"github.com/lullhq/lull/internal/pipeline/dlq"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
)

func (e *Engine) judgeDead(ctx context.Context, p *pipe, batch []queue.Message) (failed []string, err error) {
	err = e.invoke("dlq", func(inv invocation) {
		h := dlq.Handler{
			Shards: inv.Shards(e.Shards), Letters: inv.DeadLetters(e.Letters), Sources: e.sources.At(p.name),
			Live: inv.Queue(p.lanes[flight.Live].queue), Bulk: inv.Queue(p.lanes[flight.Bulk].queue),
			Dead: inv.Queue(p.dead), Config: e.cfg, Sink: p.name, Clock: inv.clk, Journal: inv.notes,
		}
		failed = h.Handle(ctx, batch)
	})
	return failed, err
}

// pruning runs prune at the start and then at its interval, like the EventBridge rule on AWS.
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

func (e *Engine) prune(ctx context.Context, p *pipe) (err error) {
	killed := e.invoke("prune", func(inv invocation) {
		r := prune.Pruner{
			Shards: inv.Shards(e.Shards), Scanner: inv.Scanner(e.ledger.Meter.Scanner(e.Shards)),
			Flights: inv.Flights(e.Flights), Letters: inv.DeadLetters(e.Letters), Schedule: inv.Schedule(e.Schedule),
			Launcher: inv.Launcher(e.launcher(p.lanes[flight.Live])),
			Live:     inv.Queue(p.lanes[flight.Live].queue), Bulk: inv.Queue(p.lanes[flight.Bulk].queue),
			Config: e.cfg, Sink: p.name, Clock: inv.clk, Journal: inv.notes,
			NewToken: rows.NewToken, NewID: flight.NewID,
		}
		_, err = r.Run(ctx)
	})
	return errors.Join(err, killed)
}

// verifyEvery is how often lull dev looks for a verification that is due, and portion is how long
// it carries one on. A deployed stack does this with a schedule.
const (
	verifyEvery = time.Minute
	portion     = time.Minute
)

// verifying carries on the verifications that the setting collections.<name>.verify orders.
func (e *Engine) verifying(ctx context.Context) {
	s := verify.Scheduled{Stack: e.Operator(nil).API(), Config: e.cfg, Clock: e.clk, Journal: e.notes}
	for e.clk.Sleep(ctx, verifyEvery) == nil {
		if err := s.Portion(ctx, portion); err != nil && ctx.Err() == nil {
			e.report(err)
		}
	}
}
