package sim

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Absurd is a document of which one version is far above all others, and the operator who resets it
// once that one is committed.
type Absurd struct {
	At    time.Duration // of the absurd version; the good ones come around it
	Looks time.Duration // when the operator begins to look

	Operate func(*operate.Operator) // changes what the operator runs with; nil for nothing
}

// The document of an Absurd: good versions are sent around the absurd one, and the operator takes
// versions from the middle one on again.
const (
	absurdID      = "absurd"
	goodVersions  = 5
	middleVersion = 3
	resetTries    = 60
)

func absurdBody(version string) queue.Outgoing {
	return queue.Outgoing{Body: fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":%q,"data":{"title":%q}}`,
		absurdID, version, version)}
}

// plague sends the versions, and plans the operator.
func (w *World) plague(a Absurd) {
	w.after(a.At, func() { w.publish(absurdBody(strings.Repeat("9", 40))) })
	for v := 1; v <= goodVersions; v++ {
		at := a.At + time.Duration(v-middleVersion)*w.dice.upTo(20*time.Second)
		w.after(max(at, 0), func() { w.publish(absurdBody(strconv.Itoa(v))) })
	}
	w.after(a.Looks, func() {
		w.operator++ // the world is not at rest before the operator has gone
		w.reset(a, resetTries)
	})
}

// reset runs the command until it is done, or the absurd version does not come any more. Then the
// source sends its good versions again: those that came meanwhile were stale.
func (w *World) reset(a Absurd, tries int) {
	doc := shard.DocID(w.cfg.DefaultCollection + "#" + absurdID)
	w.invoke("operator", patience, func(ctx context.Context, v *invocation) {
		o := w.operate(v, a.Operate)
		if k := w.table.row(doc).Committed; k == "" || !strings.HasPrefix(k.VersionText(), "999") {
			return // nothing absurd yet
		}
		order := operate.ResetOrder{Key: doc, To: strconv.Itoa(middleVersion), By: "the simulator"}
		_, _ = o.Reset(ctx, order) // what is busy is tried again
	}, func(error) {
		switch {
		case w.oracle.ledger(doc).forgot != "":
			// As the command says: a few seconds later. An eventual read may still show what was committed.
			w.after(w.drawn.StaleBy, func() {
				for v := 1; v <= goodVersions; v++ {
					w.publish(absurdBody(strconv.Itoa(v)))
				}
				w.operator--
			})
			return
		case tries > 0:
			w.after(5*time.Second, func() { w.reset(a, tries-1) })
			return
		}
		w.operator--
	})
}

// plagued is the world of a seed with a document that an operator resets.
func plagued(t testing.TB, seed uint64, operate func(*operate.Operator)) *World {
	t.Helper()
	w, d := build(t, seed, Swarm), newDice(seed, 0x72657365)
	at := d.upTo(w.options.Upstream.Calm)
	w.plague(Absurd{At: at, Looks: at + d.upTo(w.options.Upstream.Calm), Operate: operate})
	return w
}

func TestAResetKeepsEveryPromise(t *testing.T) {
	t.Parallel()
	reach(t, 300, Swarm, func(seed uint64) *World { return plagued(t, seed, nil) },
		point{aWrite, shard.RESET.String(), howApplied})
}

// A lost flight that still has the version would wait for it for ever. What the other conditions of
// RESET keep away needs a version above the absurd one, which only the model has.
func TestAResetThatLeavesNoMarkIsCaught(t *testing.T) {
	t.Parallel()
	caught(t, 100, func(seed uint64) *World {
		return plagued(t, seed, func(o *operate.Operator) {
			o.Shards = editedStore{o.Shards, only(shard.RESET), func(w *shard.Write) { w.Update = w.Update[:1] }}
		})
	})
}
