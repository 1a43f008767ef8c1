package sim

import (
	"context"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/index"
	"github.com/lullhq/lull/internal/shard"
)

// paused is the world of a seed whose sinks an operator pauses, for seconds or for many minutes.
func paused(t testing.TB, seed uint64, hooks Hooks) *World {
	t.Helper()
	return build(t, seed, Swarm, func(o *Options) {
		d := newDice(seed, 0x70617573)
		long := time.Duration(d.logUniform(1, 3000) * float64(time.Second))
		o.Pausing = &Pausing{At: d.upTo(o.Upstream.Calm), For: long}
		o.Upstream.Calm += long
		o.Hooks = hooks
	})
}

func TestEveryPromiseHoldsWhereAnOperatorPausesTheSinks(t *testing.T) {
	t.Parallel()
	got := map[string]int64{}
	for seed := uint64(1); seed <= seeds(300) && !t.Failed(); seed++ {
		r := paused(t, seed, Hooks{}).Run()
		report(t, r, Swarm)
		for _, w := range []shard.Transition{shard.PAUSE, shard.RESUME} {
			got[w.String()] += r.Counts.Writes[w.String()]
		}
	}
	if t.Log(got); got["PAUSE"] == 0 || got["RESUME"] == 0 {
		t.Errorf("%v: the worlds do not get there", got)
	}
}

// heedless is a table in which index sees no pause.
type heedless struct{ shard.Store }

func (h heedless) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	rows, err := h.Store.Read(ctx, docs, c)
	for i := range rows {
		rows[i].PausedAt = 0
	}
	return rows, err
}

func TestAnIndexThatHeedsNoPauseIsCaught(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		r := paused(t, seed, Hooks{Index: func(h *index.Handler) { h.Shards = heedless{h.Shards} }}).Run()
		if len(r.Violations) > 0 {
			t.Logf("seed %d: %s", seed, r.Violations[0])
			return
		}
	}
	t.Error("lives after 100 seeds")
}
