package sim

import (
	"context"
	"testing"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
)

// oblivious is the world of a seed with a document that is forgotten, or removed.
func oblivious(t testing.TB, seed uint64, remove bool, hooks Hooks) *World {
	t.Helper()
	return build(t, seed, Swarm, func(o *Options) {
		d := newDice(seed, 0x666f7267)
		o.Forgetting = &Forgetting{At: d.upTo(o.Upstream.Calm), Remove: remove}
		o.Hooks = hooks
	})
}

// Whenever a document is forgotten, or removed, nothing older follows the tombstone, whatever
// fails.
func TestATombstoneOfAnOperatorKeepsEveryPromise(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]bool{"forget": false, "remove": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			buried := 0
			for w, r := range runs(t, 300, Swarm, func(seed uint64) *World {
				return oblivious(t, seed, remove, Hooks{})
			}) {
				buried += w.oracle.alarms[journal.Removed]
				doc := shard.DocID(w.cfg.DefaultCollection + "#" + forgottenID)
				l := w.oracle.ledger(doc)
				if !remove && (!w.table.row(doc).Committed.IsFinal() || l.inSinkOp != shard.Delete) {
					t.Errorf("seed %d: %s is not forgotten: %+v", r.Seed, doc, w.table.row(doc))
				}
			}
			if buried == 0 {
				t.Error("nothing was removed: the worlds do not get there")
			}
			t.Logf("%d tombstones", buried)
		})
	}
}

// claimless is a table that lets an operator take a lease that somebody has.
type claimless struct{ shard.Store }

func (c claimless) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if w.Transition.Base() == shard.CLAIM {
		w.Cond = w.Cond[:3]
	}
	return c.Store.Write(ctx, w)
}

// uncommitted is a table that says yes to an operator's COMMIT and does nothing.
type uncommitted struct{ shard.Store }

func (u uncommitted) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if w.Transition.Base() == shard.COMMIT {
		return shard.Row{}, nil
	}
	return u.Store.Write(ctx, w)
}

func TestATombstoneWithoutItsConditionsIsCaught(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]func(*operate.Operator){
		"it takes the lease that somebody has": func(o *operate.Operator) { o.Shards = claimless{o.Shards} },
		"it does not commit":                   func(o *operate.Operator) { o.Shards = uncommitted{o.Shards} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caught(t, 300, func(seed uint64) *World { return oblivious(t, seed, false, Hooks{Operate: hook}) })
		})
	}
}
