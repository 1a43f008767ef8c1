// SPDX-License-Identifier: Apache-2.0

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

// A document gets new versions during an operator's command, which forgets the document or removes
// it as an orphan. The oracle's rules say that no older version may follow the tombstone.
const (
	forgottenID       = "forgotten"
	forgottenVersions = 6
	removeTries       = 60
)

// versions sends the versions of the document, about half of them before at.
func (w *World) versions(at time.Duration, body func(v int) string) {
	for v := 1; v <= forgottenVersions; v++ {
		when := at + time.Duration(2*v-forgottenVersions)*w.dice.upTo(10*time.Second)
		w.after(max(when, 0), func() { w.publish(queue.Outgoing{Body: body(v)}) })
	}
}

// remove runs the command until the command is done.
func (w *World) remove(seen operate.ReconcileCopy, run string, tries int) {
	doc := shard.DocID(w.cfg.DefaultCollection + "#" + forgottenID)
	p, done := w.pipeOf(doc), false
	// The invocation ends before a lease of its own ends, as a function would. A machine that
	// sleeps between its CLAIM and its request is not simulated. If the sink has versions, the
	// fence protects against that.
	w.invoke("operator", w.cfg.Index.SinkDeadline+5*time.Second, func(ctx context.Context, v *invocation) {
		o := w.operate(v, nil)
		if seen.Key == "" {
			s, there, err := engineReader{v, p.engine}.Get(ctx, doc)
			if err != nil || !there {
				return
			}
			seen = operate.ReconcileCopy{Key: doc, OrderKey: s.Key, Fence: int64(s.Fence)}
		}
		got, err := o.API().Remove(ctx, operate.RemoveOrder{
			Collection: doc.Collection(), Run: run, By: "the simulator",
			Documents: []operate.ReconcileCopy{seen},
		})
		done = err == nil && len(got.Documents) == 1 && got.Documents[0].Outcome != "in_motion" &&
			got.Documents[0].Outcome != "failed"
	}, func(error) {
		if pending := w.table.row(doc); !done && (tries > 0 || pending.Flight == "operator") {
			w.after(5*time.Second, func() { w.remove(seen, run, tries-1) })
			return
		}
		w.operator--
	})
}

// oblivious returns the simulated run of a seed with a document that is removed.
func oblivious(t testing.TB, seed uint64) *World {
	t.Helper()
	w := build(t, seed, Swarm)
	at := newDice(seed, 0x666f7267).upTo(w.options.Upstream.Calm)
	w.versions(at, func(v int) string {
		return fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"%d","data":{"title":"v%d"}}`, forgottenID, v, v)
	})
	w.after(at, func() {
		w.operator++ // the run must not end before the operator is done
		w.remove(operate.ReconcileCopy{}, string(w.newID(epoch.Add(w.now))), removeTries)
	})
	return w
}

// TestATombstoneOfAnOperatorKeepsEveryPromise: whenever a document is removed, no older version
// follows the tombstone, whatever fails.
func TestATombstoneOfAnOperatorKeepsEveryPromise(t *testing.T) {
	t.Parallel()
	buried := 0
	for w := range runs(t, 300, Swarm, func(seed uint64) *World { return oblivious(t, seed) }) {
		buried += w.coverage[step(journal.Removed)]
	}
	if t.Logf("%d tombstones", buried); buried == 0 {
		t.Error("nothing was removed: no simulated run reaches a removal")
	}
}
