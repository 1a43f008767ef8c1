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
	for _, r := range runs(t, 300, Swarm, func(seed uint64) *World { return paused(t, seed, Hooks{}) }) {
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
	hooks := Hooks{Index: func(h *index.Handler) { h.Shards = heedless{h.Shards} }}
	caught(t, 100, func(seed uint64) *World { return paused(t, seed, hooks) })
}
