package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Forgetting is a document of which versions come while an operator has it forgotten, or removed as
// an orphan: the oracle's rules say that nothing older than the tombstone follows it.
type Forgetting struct {
	At     time.Duration // of the command
	Remove bool          // as an orphan: newer versions win
}

// The document of a Forgetting, and how many versions are sent, half of them before the command.
const (
	forgottenID       = "forgotten"
	forgottenVersions = 6
	forgetTries       = 60
)

// oblivion sends the versions, and plans the operator.
func (w *World) oblivion(f Forgetting) {
	for v := 1; v <= forgottenVersions; v++ {
		at := f.At + time.Duration(2*v-forgottenVersions)*w.dice.upTo(10*time.Second)
		w.after(max(at, 0), func() {
			w.publish(queue.Outgoing{Body: fmt.Sprintf(
				`{"type":"doc.changed","subject":%q,"sequence":"%d","data":{"title":"v%d"}}`, forgottenID, v, v)})
		})
	}
	w.after(f.At, func() {
		w.operator++ // the world is not at rest before the operator has gone
		w.forget(f, operate.ReconcileCopy{}, string(w.newID(epoch.Add(w.now))), forgetTries)
	})
}

// forget runs the command until it is done.
func (w *World) forget(f Forgetting, seen operate.ReconcileCopy, run string, tries int) {
	doc := shard.DocID(w.cfg.DefaultCollection + "#" + forgottenID)
	p, done := w.pipeOf(doc), false
	// It ends before a lease of its own does, as a function would. A machine that sleeps between its
	// CLAIM and its request is not simulated: the fence covers that where the sink has versions.
	w.invoke("operator", w.cfg.Index.SinkDeadline+5*time.Second, func(ctx context.Context, v *invocation) {
		o := w.operate(v)
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
