package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Forgetting plans a document with new versions during an operator's command. The command forgets
// the document, or removes it as an orphan. The oracle's rules say that no older version may follow
// the tombstone.
type Forgetting struct {
	At     time.Duration // the time of the command
	Remove bool          // remove the document as an orphan, so that newer versions win

	Operate func(*operate.Operator) // changes the operator that runs the command; nil for no change
}

// The document of a Forgetting, and the number of its versions. Half of them are sent before the
// command.
const (
	forgottenID       = "forgotten"
	forgottenVersions = 6
	forgetTries       = 60
)

// oblivion sends the versions, and plans the operator's command.
func (w *World) oblivion(f Forgetting) {
	for v := 1; v <= forgottenVersions; v++ {
		at := f.At + time.Duration(2*v-forgottenVersions)*w.dice.upTo(10*time.Second)
		w.after(max(at, 0), func() {
			w.publish(queue.Outgoing{Body: fmt.Sprintf(
				`{"type":"doc.changed","subject":%q,"sequence":"%d","data":{"title":"v%d"}}`, forgottenID, v, v)})
		})
	}
	w.after(f.At, func() {
		w.operator++ // so that the run does not end before the operator is done
		w.forget(f, operate.ReconcileCopy{}, string(w.newID(epoch.Add(w.now))), forgetTries)
	})
}

// forget runs the command until the command is done.
func (w *World) forget(f Forgetting, seen operate.ReconcileCopy, run string, tries int) {
	doc := shard.DocID(w.cfg.DefaultCollection + "#" + forgottenID)
	p, done := w.pipeOf(doc), false
	// The invocation ends before a lease of its own ends, as a function would. A machine that
	// sleeps between its CLAIM and its request is not simulated. If the sink has versions, the
	// fence protects against that.
	w.invoke("operator", w.cfg.Index.SinkDeadline+5*time.Second, func(ctx context.Context, v *invocation) {
		o := w.operate(v, f.Operate)
		if !f.Remove {
			got, err := o.Forget(ctx, operate.ForgetOrder{Key: doc, By: "the simulator"})
			done = err == nil && w.table.row(doc).Committed.IsFinal() && got.Remaining == got.Waits
			return
		}
		if seen.Key == "" {
			s, there, err := engineReader{v, p.engine}.Get(ctx, doc)
			if err != nil || !there {
				return
			}
			seen = operate.ReconcileCopy{Key: doc, OrderKey: s.Key, Fence: int64(s.Fence)}
		}
		got, err := o.Remove(ctx, operate.RemoveOrder{
			Collection: doc.Collection(), Run: run, By: "the simulator",
			Documents: []operate.ReconcileCopy{seen},
		})
		done = err == nil && len(got.Documents) == 1 && got.Documents[0].Outcome != "in_motion" &&
			got.Documents[0].Outcome != "failed"
	}, func(error) {
		if pending := w.table.row(doc); !done && (tries > 0 || pending.Flight == "operator") {
			w.after(5*time.Second, func() { w.forget(f, seen, run, tries-1) })
			return
		}
		w.operator--
	})
}

// oblivious returns the simulated run of a seed with a document that is forgotten or removed.
func oblivious(t testing.TB, seed uint64, remove bool, operate func(*operate.Operator)) *World {
	t.Helper()
	w := build(t, seed, Swarm)
	at := newDice(seed, 0x666f7267).upTo(w.options.Upstream.Calm)
	w.oblivion(Forgetting{At: at, Remove: remove, Operate: operate})
	return w
}

// TestATombstoneOfAnOperatorKeepsEveryPromise: whenever a document is forgotten or removed, no
// older version follows the tombstone, whatever fails.
func TestATombstoneOfAnOperatorKeepsEveryPromise(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]bool{"forget": false, "remove": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			buried := 0
			for w, r := range runs(t, 300, Swarm, func(seed uint64) *World {
				return oblivious(t, seed, remove, nil)
			}) {
				buried += w.coverage[step(journal.Removed)]
				doc := shard.DocID(w.cfg.DefaultCollection + "#" + forgottenID)
				l := w.oracle.ledger(doc)
				if !remove && (!w.table.row(doc).Committed.IsFinal() || l.inSinkOp != shard.Delete) {
					t.Errorf("seed %d: %s is not forgotten: %+v", r.Seed, doc, w.table.row(doc))
				}
			}
			if buried == 0 {
				t.Error("nothing was removed: no simulated run reaches a removal")
			}
			t.Logf("%d tombstones", buried)
		})
	}
}

func TestATombstoneWithoutItsConditionsIsCaught(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]func(*operate.Operator){
		"it takes the lease that somebody has": func(o *operate.Operator) {
			o.Shards = editedStore{o.Shards, claims, func(w *shard.Write) { w.Cond = w.Cond[:3] }}
		},
		"it does not commit": func(o *operate.Operator) { o.Shards = ignoring{o.Shards, commits} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caught(t, 300, func(seed uint64) *World { return oblivious(t, seed, false, hook) })
		})
	}
}
