// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/receive"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// GivenUp is the level of [dropAll], which only tests have.
const GivenUp Level = "given-up"

// dropAll is the world of a seed in which operators drop whatever dead letters there are, at any
// time: all of them by a job, several times, and single ones. Others redrive meanwhile. Each fourth
// of these worlds is wide. In the end the operators do what the help of the command says.
func dropAll(t testing.TB, seed uint64, edits jobEdits, change ...func(*Options)) (*World, *Jobbing) {
	t.Helper()
	j := jobbed(seed, "drop", edits)
	change = append(change, func(o *Options) {
		o.Watch = j.see
		o.Config.Retry.DeadDeadline = time.Minute + j.dice.upTo(time.Minute) // many dead letters
	})
	w := broad(t, seed, change...)
	j.lettersOf(w, operate.LetterOrder{All: true, By: "the simulator"}, operate.DropJob)
	calm := w.options.Upstream.Calm
	for range j.dice.IntN(3) {
		w.after(j.dice.upTo(2*calm), w.redrive)
	}
	for range j.dice.IntN(4) {
		w.after(j.dice.upTo(2*calm), j.dropOne)
	}
	runs := 1 + j.dice.IntN(5)
	j.over = func(job.State) bool { return j.done >= runs }
	w.operator++
	w.oracle.waits(2 * calm)
	w.after(2*calm, func() { j.renew(0) })
	j.begin(w, j.dice.upTo(calm+calm/2))
	return w, j
}

// broad is a wide world for each fourth seed. [Jobbing.renew] cannot write a newer version of a
// reference, nor one above an absurd version. In a world of days the programs come too seldom.
func broad(t testing.TB, seed uint64, change ...func(*Options)) *World {
	t.Helper()
	if b := widthOf(seed); seed%4 == 0 && !b.refers && !b.days {
		if w := b.world(t, seed, change...); !b.absurd {
			return w
		}
	}
	return build(t, seed, Swarm, change...)
}

// command runs a command of an operator, and then calls then.
func (j *Jobbing) command(do func(ctx context.Context, o *operate.Operator) error, then func()) {
	w := j.w
	w.operator++
	w.invoke(operators, patience, func(ctx context.Context, v *invocation) {
		o := w.operate(v, nil)
		o.Queues = func(sink string, lane flight.Lane) queue.Queue { return v.Queue(w.pipeNamed(sink).lane(lane)) }
		o.Dead = droppingStore{o.Dead, j, operate.LetterOrder{}.From}
		_ = do(ctx, &o) // what fails is left
	}, func(error) {
		w.operator--
		then()
	})
}

// dropOne is an operator who drops one dead letter.
func (j *Jobbing) dropOne() {
	j.command(func(ctx context.Context, o *operate.Operator) error {
		all := j.w.letters.facts()
		if len(all) == 0 {
			return nil
		}
		order := operate.LetterOrder{By: "another"}
		order.ID = all[j.dice.IntN(len(all))].ID
		_, err := o.API().Drop(ctx, order)
		return err
	}, func() {})
}

// renew sends a newer version of each document of which a dropped version was claimed, or is in
// the sink: nothing older is written after it. In half of the worlds it does so for the documents
// of lost flights, too, which prune would call stuck. It waits until no command has begun for some
// minutes. A redrive that was overtaken leaves a dead letter that shows as redriven (see
// docs/model.md), so those are sent once more.
func (j *Jobbing) renew(before int64) {
	w := j.w
	if begun := w.counts.Invocations[operators]; w.operator > 1 || begun > before {
		w.oracle.waits(200 * time.Second)
		w.after(200*time.Second, func() { j.renew(begun) })
		return
	}
	stuck := map[shard.DocID]bool{}
	for _, m := range w.unfinished() {
		for _, e := range m.Entries() {
			stuck[e.Doc] = stuck[e.Doc] || w.options.Seed%2 == 0 && w.oracle.notLost(m.Flight)
		}
	}
	for _, doc := range w.oracle.sorted() {
		l, row := w.oracle.docs[doc], w.table.row(doc)
		wants := w.oracle.given(doc, row.Claimed) || l.inSink > row.Committed && w.oracle.given(doc, l.inSink)
		if (wants || stuck[doc]) && !j.lapse {
			j.renewed++
			newest, _ := new(big.Int).SetString(slices.Max(l.keys).VersionText(), 10)
			w.publish(queue.Outgoing{Body: fmt.Sprintf(
				`{"type":"doc.changed","subject":%q,"collection":%q,"sequence":"%d","data":{"title":"newer"}}`, doc.ID(),
				doc.Collection(), newest.Add(newest, big.NewInt(1)))})
		}
	}
	j.command(func(ctx context.Context, o *operate.Operator) error {
		order := operate.LetterOrder{By: "the simulator"}
		order.State = deadletter.Redriven
		_, err := o.API().Redrive(ctx, order)
		return err
	}, func() { w.operator-- })
}

// Operators drop any dead letters at any time. No more is lost than the help of the command says.
func TestEveryDeadLetterIsDroppedWhateverFails(t *testing.T) {
	t.Parallel()
	var last *Jobbing
	sum := &Jobbing{}
	renewed, kept := 0, 0
	for w, r := range runs(t, 3000, GivenUp, func(seed uint64) (w *World) {
		w, last = dropAll(t, seed, jobEdits{})
		return w
	}) {
		sum.add(last)
		renewed += last.renewed
		for _, m := range w.unfinished() {
			if w.oracle.notLost(m.Flight) {
				kept++
				if r.Seed%2 == 0 {
					t.Errorf("seed %d: flight %s stays although newer versions were sent", r.Seed, m.Flight)
				}
			}
		}
	}
	if t.Logf("%d documents renewed, %d manifests kept", renewed, kept); testing.Short() {
		return // few runs need not reach every case
	}
	sum.report(t)
	if min(renewed, kept) == 0 {
		t.Error("the worlds do not get there")
	}
}

// A copy that lull sent is not done because its dead letter was there once.
var takenForDead = mutant{"copies taken for dead", "", func(**World) Hooks { return Hooks{Answer: acknowledgeCopies} }}

// acknowledgeCopies acknowledges what lull sent itself, as if its dead letter were still there.
func acknowledgeCopies(_ *receive.Handler, batch []queue.Message, failed []string) []string {
	for _, m := range batch {
		if copied(&message{Message: m}) {
			failed = slices.DeleteFunc(failed, func(id string) bool { return id == m.ID })
		}
	}
	return failed
}

// The oracle excuses the losses that a drop causes. In the same worlds, the oracle still notices
// the losses that a change of the protocol causes.
func TestEveryMutantBesideADropIsNoticed(t *testing.T) {
	t.Parallel()
	if testing.Short() || raceEnabled {
		t.Skip("hundreds of worlds")
	}
	within := map[string]uint64{
		"delete at hold": 10, "acknowledge because pending is newer": 10, "dead taken for committed": 10,
		"cap without claimed": 100, "release forgets claimed": 200, "delete before commit": 10,
		"reject before the dead letter": 300, "reject forgets claimed": 400, "park keeps pending": 10,
		"redrive deletes the dead letter": 10, "copies taken for dead": 10,
	}
	for _, m := range append(slices.Clone(mutants), takenForDead) {
		if n, asked := within[m.name]; asked {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				caught(t, n, func(seed uint64) *World {
					return m.broken(func(change func(*Options)) *World {
						w, _ := dropAll(t, seed, jobEdits{}, change)
						return w
					})
				})
			})
		}
	}
	t.Run("no newer version is sent", func(t *testing.T) {
		t.Parallel()
		caught(t, 300, func(seed uint64) *World {
			w, j := dropAll(t, seed, jobEdits{})
			j.lapse = true
			return w
		})
	})
}
