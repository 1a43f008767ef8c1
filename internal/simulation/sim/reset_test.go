// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Absurd is a document with one version far above all others. An operator resets the document after
// that version was committed.
type Absurd struct {
	At    time.Duration // when the absurd version is sent; good versions are sent around that time
	Looks time.Duration // when the operator begins to check

	Dies  bool // after the reset two more versions become dead letters, and the absurd version is sent again
	Waves bool // two absurd versions, and after the second a high reset and then a low reset

	Operate func(*operate.Operator) // changes the operator that runs the command; nil for no change
}

// The document of an Absurd. Good versions are sent around the absurd one. The reset makes the
// middle version and later ones new again.
const (
	absurdID      = "absurd"
	goodVersions  = 5
	middleVersion = 3
	resetTries    = 60
)

// resetStep is one reset. A resetStep withdraws an absurd version that is sent before it, or
// corrects the reset before it.
type resetStep struct{ absurd, to string }

var (
	nines   = strings.Repeat("9", 40)
	lowest  = strconv.Itoa(middleVersion)
	oneStep = []resetStep{{nines, lowest}}
	// The second reset is to a version above the first absurd one. The last reset is to a version
	// below it.
	waves = []resetStep{{"900", lowest}, {nines, "950"}, {"", lowest}}
)

func (a *Absurd) steps() []resetStep {
	if a.Waves {
		return waves
	}
	return oneStep
}

func absurdBody(version string) queue.Outgoing {
	return queue.Outgoing{Body: fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":%q,"data":{"title":%q}}`,
		absurdID, version, version)}
}

// plague plans when the versions are sent, and what the operator does.
func (w *World) plague(a Absurd) {
	w.after(a.At, func() { w.publish(absurdBody(a.steps()[0].absurd)) })
	for v := 1; v <= goodVersions; v++ {
		at := a.At + time.Duration(v-middleVersion)*w.dice.upTo(20*time.Second)
		w.after(max(at, 0), func() { w.publish(absurdBody(strconv.Itoa(v))) })
	}
	w.operator++ // so that the run does not end before the operator is done
	w.after(a.Looks, func() { w.reset(a, a.steps(), resetTries) })
}

// reset runs the command until each step is done, or until the absurd version no longer arrives.
// Afterwards the source sends its good versions again, because versions that arrived in the
// meantime were stale.
func (w *World) reset(a Absurd, steps []resetStep, tries int) {
	doc := shard.DocID(w.cfg.DefaultCollection + "#" + absurdID)
	w.invoke("operator", patience, func(ctx context.Context, v *invocation) {
		o := w.operate(v, a.Operate)
		if k := w.table.row(doc).Committed; k == "" || steps[0].absurd != "" && k.VersionText() != steps[0].absurd {
			return // the absurd version is not committed yet
		}
		order := operate.ResetOrder{Key: doc, To: steps[0].to, By: "the simulator"}
		_, _ = o.API().Reset(ctx, order) // if the document is busy, the command is tried again
	}, func(error) {
		// A reset without an answer may be applied later.
		done := len(w.oracle.ledger(doc).took) > len(a.steps())-len(steps)
		switch {
		case done && len(steps) > 1:
			if next := steps[1].absurd; next != "" {
				w.publish(absurdBody(next))
			}
			w.after(5*time.Second, func() { w.reset(a, steps[1:], resetTries) })
			return
		case done:
			// The command says to wait a few seconds. An eventually consistent read may still show
			// the withdrawn version.
			w.after(w.drawn.StaleBy, func() {
				for v := 1; v <= goodVersions; v++ {
					w.publish(absurdBody(strconv.Itoa(v)))
				}
				if a.Dies {
					w.sendDying()
				}
				if a.Waves {
					w.sendAbsurd(20*time.Second, "900")
					w.sendAbsurd(60*time.Second, nines)
				}
				w.after(2*time.Minute, func() { w.operator-- }) // all messages are sent by then
			})
			return
		case tries > 0:
			w.after(5*time.Second, func() { w.reset(a, steps, tries-1) })
			return
		}
		w.operator--
	})
}

// sendAbsurd sends an absurd version again, once unchanged and once in a resync run.
func (w *World) sendAbsurd(at time.Duration, version string) {
	absurd := absurdBody(version)
	again := absurd
	const run = `"mode":"resync","resyncrun":"01JD2V6Y5T3KQ8Z4M7N9P0R1S3",`
	again.Body = strings.Replace(again.Body, `"data"`, run+`"data"`, 1)
	w.after(at, func() { w.publish(absurd) })
	w.after(at+5*time.Second, func() { w.publish(again) })
}

// sendDying sends versions that the sink refuses. Copies of the absurd version follow each of them.
func (w *World) sendDying() {
	for v := goodVersions + 1; v <= goodVersions+2; v++ {
		dies := absurdBody(strconv.Itoa(v))
		for _, r := range w.sources.Decode(queue.Message{Body: dies.Body}) {
			w.poisons[version{r.Event.Doc, r.Event.Key}] = rejected
		}
		at := time.Duration(v-goodVersions) * 40 * time.Second
		w.after(at, func() { w.publish(dies) })
		w.sendAbsurd(at+20*time.Second, nines)
	}
}

// plagued returns the simulated run of a seed with a document that an operator resets.
func plagued(t testing.TB, seed uint64, a Absurd) *World {
	t.Helper()
	w, d := build(t, seed, Swarm), newDice(seed, 0x72657365)
	a.At = d.upTo(w.options.Upstream.Calm)
	a.Looks = a.At + d.upTo(w.options.Upstream.Calm)
	w.plague(a)
	return w
}

func TestAResetKeepsEveryPromise(t *testing.T) {
	t.Parallel()
	reach(t, 300, Swarm, func(seed uint64) *World { return plagued(t, seed, Absurd{}) },
		point{aWrite, shard.RESET.String(), howApplied})
}

// TestAResetStaysAReset: the withdrawn version stays withdrawn, however many dead letters follow,
// and in any resync run that sends the version again.
func TestAResetStaysAReset(t *testing.T) {
	t.Parallel()
	reach(t, 100, Swarm, func(seed uint64) *World { return plagued(t, seed, Absurd{Dies: true}) },
		point{aWrite, shard.RESET.String(), howApplied})
}

// TestResetsUpAndDownStayResets: a high reset must not forget a withdrawn version that a later low
// reset would make new again.
func TestResetsUpAndDownStayResets(t *testing.T) {
	t.Parallel()
	reach(t, 100, Swarm, func(seed uint64) *World { return plagued(t, seed, Absurd{Waves: true}) },
		point{aWrite, shard.RESET.String(), howApplied})
}

func TestAResetThatForgetsWhatIsBelowItsFloorIsCaught(t *testing.T) {
	t.Parallel()
	caught(t, 100, func(seed uint64) *World {
		return plagued(t, seed, Absurd{Waves: true, Operate: func(o *operate.Operator) {
			o.Shards = editedStore{o.Shards, only(shard.RESET), func(w *shard.Write) {
				keys := shard.KeySet(w.Update[1].Val.Text).Keys()
				floor := shard.OrderKey(w.Update[0].Val.Text)
				keys = slices.DeleteFunc(keys, func(k shard.OrderKey) bool { return k < floor })
				w.Update[1].Val.Text = string(shard.KeySetOf(keys...))
			}}
		}})
	})
}

func TestAResetThatOnlyMarksAVersionDeadIsCaught(t *testing.T) {
	t.Parallel()
	caught(t, 100, func(seed uint64) *World {
		return plagued(t, seed, Absurd{Dies: true, Operate: func(o *operate.Operator) {
			o.Shards = editedStore{o.Shards, only(shard.RESET), func(w *shard.Write) {
				taken := shard.KeySet(w.Update[1].Val.Text).Keys()[0]
				dead := shard.Value{Kind: shard.KindBinary, Text: string(taken)}
				w.Update[1] = shard.Action{Attr: shard.AttrDead, Val: dead}
			}}
		}})
	})
}

// TestAResetThatLeavesNoMarkIsCaught: a lost flight with the version would wait for ever. The other
// conditions of RESET matter only with a version above the absurd one, which only the model has.
func TestAResetThatLeavesNoMarkIsCaught(t *testing.T) {
	t.Parallel()
	caught(t, 100, func(seed uint64) *World {
		return plagued(t, seed, Absurd{Operate: func(o *operate.Operator) {
			o.Shards = editedStore{o.Shards, only(shard.RESET), func(w *shard.Write) { w.Update = w.Update[:1] }}
		}})
	})
}
