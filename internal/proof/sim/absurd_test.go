package sim

import (
	"context"
	"testing"

	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
)

// plagued is the world of a seed with a document that an operator resets.
func plagued(t testing.TB, seed uint64, hooks Hooks) *World {
	t.Helper()
	return build(t, seed, Swarm, func(o *Options) {
		d := newDice(seed, 0x72657365)
		at := d.upTo(o.Upstream.Calm)
		o.Absurd = &Absurd{At: at, Looks: at + d.upTo(o.Upstream.Calm)}
		o.Hooks = hooks
	})
}

func TestAResetKeepsEveryPromise(t *testing.T) {
	t.Parallel()
	resets := int64(0)
	for _, r := range runs(t, 300, Swarm, func(seed uint64) *World { return plagued(t, seed, Hooks{}) }) {
		resets += r.Counts.Writes[shard.RESET.String()]
	}
	if resets == 0 {
		t.Error("nothing was reset: the worlds do not get there")
	}
	t.Logf("%d resets", resets)
}

// markless is a RESET that does not mark what it takes back as dead.
type markless struct{ shard.Store }

func (m markless) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if w.Transition == shard.RESET {
		w.Update = w.Update[:1]
	}
	return m.Store.Write(ctx, w)
}

// A lost flight that still has the version would wait for it for ever. What the other conditions of
// RESET keep away needs a version above the absurd one, which only the model has.
func TestAResetThatLeavesNoMarkIsCaught(t *testing.T) {
	t.Parallel()
	hooks := Hooks{Operate: func(o *operate.Operator) { o.Shards = markless{o.Shards} }}
	caught(t, 100, func(seed uint64) *World { return plagued(t, seed, hooks) })
}
