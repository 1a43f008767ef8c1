// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/shard"
)

// Pausing is an operator who pauses all sinks for a while.
type Pausing struct {
	At  time.Duration
	For time.Duration
}

// pausing plans the operator's commands. The run does not end before the sinks are resumed.
func (w *World) pausing(h Pausing) {
	w.after(h.At, func() {
		w.operator++
		w.pause(false, func() {
			w.after(h.For, func() { w.pause(true, func() { w.operator-- }) })
		})
	})
}

// pause runs a command until every sink is paused, or resumed if resume is set.
func (w *World) pause(resume bool, then func()) {
	w.invoke("operator", patience, func(ctx context.Context, v *invocation) {
		o := w.operate(v, nil)
		order := operate.PauseOrder{All: true, By: "the simulator", Why: "a test"}
		do := o.API().Pause
		if resume {
			do = o.API().Resume
		}
		_, _ = do(ctx, order) // a failed command is tried again
	}, func(error) {
		for _, p := range w.pipes {
			if (w.table.row(shard.HealthRow(p.name)).PausedAt != 0) == resume {
				w.after(5*time.Second, func() { w.pause(resume, then) })
				return
			}
		}
		then()
	})
}

// paused returns the simulated run of a seed in which an operator pauses the sinks, for seconds or
// for many minutes.
func paused(t testing.TB, seed uint64, hooks Hooks) *World {
	t.Helper()
	d := newDice(seed, 0x70617573)
	h := Pausing{For: time.Duration(d.logUniform(1, 3000) * float64(time.Second))}
	w := build(t, seed, Swarm, func(o *Options) {
		h.At = d.upTo(o.Upstream.Calm)
		o.Upstream.Calm += h.For
		o.Hooks = hooks
	})
	w.pausing(h)
	return w
}

func TestEveryPromiseHoldsWhereAnOperatorPausesTheSinks(t *testing.T) {
	t.Parallel()
	reach(t, 300, Swarm, func(seed uint64) *World { return paused(t, seed, Hooks{}) },
		point{aWrite, shard.PAUSE.String(), howApplied}, point{aWrite, shard.RESUME.String(), howApplied})
}

func TestAnIndexThatHeedsNoPauseIsCaught(t *testing.T) {
	t.Parallel()
	hooks := Hooks{Index: func(h *index.Handler) {
		h.Shards = seenStore{h.Shards, func(r *shard.Row) { r.PausedAt = 0 }}
	}}
	caught(t, 100, func(seed uint64) *World { return paused(t, seed, hooks) })
}
