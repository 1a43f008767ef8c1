// SPDX-License-Identifier: Apache-2.0

package rebuild_test

import (
	"context"
	"errors"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/seam/clock"
)

// driven runs the job of a rebuild as one program does.
func driven(ctx context.Context, s *rebuild.Service, o rebuild.StepOrder,
	do func(context.Context, rebuild.StepOrder) (rebuild.Cursor, bool, error), report func(rebuild.Progress),
) (rebuild.Progress, error) {
	r := job.Runner{
		Store: job.Ledger{Shards: s.Shards, Clock: clock.System{}, NewToken: s.NewToken},
		Clock: clock.System{}, By: o.By,
		Report: func(s job.State) {
			if p, err := rebuild.ResultOf(s, nil); err == nil && report != nil {
				report(p)
			}
		},
	}
	state, err := job.Run(ctx, r, rebuild.Job(s.SinkName, o, do), func(rebuild.Progress) {})
	return rebuild.ResultOf(state, err)
}

// started starts a rebuild as `lull rebuild` does.
func started(ctx context.Context, s *rebuild.Service, o rebuild.Order, report func(rebuild.Progress)) (rebuild.Progress,
	error,
) {
	c, err := s.Plan(ctx, o)
	if err != nil || o.DryRun {
		return c.Progress, err
	}
	return driven(ctx, s, rebuild.StepOrder{
		Action: rebuild.Start, From: c, By: o.By, Allow: &o.Allow, Mapping: o.Mapping, Settings: o.Settings,
	}, s.Step, report)
}

// continued resumes or aborts a rebuild.
func continued(ctx context.Context, s *rebuild.Service, a rebuild.Action, by string, allow *int) (rebuild.Progress,
	error,
) {
	c, err := s.Continue(ctx, a)
	if err != nil {
		return c.Progress, err
	}
	return driven(ctx, s, rebuild.StepOrder{Action: a, From: c, By: by, Allow: allow}, s.Step, nil)
}

func (g *ground) startWith(s *rebuild.Service, o rebuild.Order) (rebuild.Progress, error) {
	return started(g.Context(), s, o, func(p rebuild.Progress) { g.told = append(g.told, p) })
}

func (g *ground) resume(s *rebuild.Service, by string, allow *int) (rebuild.Progress, error) {
	return continued(g.Context(), s, rebuild.Resume, by, allow)
}

func (g *ground) abort(s *rebuild.Service, by string) (rebuild.Progress, error) {
	return continued(g.Context(), s, rebuild.Abort, by, nil)
}

func (g *ground) ledger() job.Ledger { return job.Ledger{Shards: g.Shards, Clock: clock.System{}} }

// stop stops the job as `lull jobs stop` does.
func (g *ground) stop() {
	g.Helper()
	err := g.ledger().StopJob(context.WithoutCancel(g.Context()), "rebuild-search", "eve")
	if err != nil && !errors.Is(err, job.ErrNone) {
		g.Fatal(err)
	}
}

func (e *engine) startWith(s *rebuild.Service, o rebuild.Order) (rebuild.Progress, error) {
	return started(e.Context(), s, o, nil)
}

func (e *engine) resume(s *rebuild.Service, by string, allow *int) (rebuild.Progress, error) {
	return continued(e.Context(), s, rebuild.Resume, by, allow)
}

func (e *engine) abort(s *rebuild.Service, by string) (rebuild.Progress, error) {
	return continued(e.Context(), s, rebuild.Abort, by, nil)
}
