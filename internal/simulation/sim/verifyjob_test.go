// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/operator/verify"
	"github.com/lullhq/lull/internal/shard"
)

func (a jobAPI) Reconcile(ctx context.Context, o operate.ReconcileOrder) (page operate.ReconcilePage, err error) {
	o.Limit = a.j.limit
	err = a.call(ctx, func(ctx context.Context, op *operate.Operator) (err error) {
		page, err = op.API().Reconcile(ctx, o)
		return err
	})
	return page, err
}

// healed returns the simulated run of a seed in which data is lost, and repaired by the job of
// `lull index check`.
func healed(t testing.TB, seed uint64, of Disaster, edits jobEdits, change func(*verify.Verification)) (*World,
	*Jobbing,
) {
	t.Helper()
	j := jobbed(seed, "verify-content", edits)
	j.known = nil
	w, d := build(t, seed, Swarm, func(o *Options) { o.Watch = j.see }), newDice(seed, 0x6865616c+uint64(of.Loss))
	of.At = d.upTo(w.options.Upstream.Calm)
	of.Backup = d.upTo(of.At)
	of.Heal = func(w *World, done func([]shard.DocID, bool)) { j.heal(w, change, done) }
	w.await(&of)
	return w, j
}

// heal runs the job until it is done.
func (j *Jobbing) heal(w *World, change func(*verify.Verification), done func(lost []shard.DocID, waiting bool)) {
	order := verify.Order{Collection: "content", Repair: true}
	j.run = func(ctx context.Context, r job.Runner, api operate.API) error {
		v := &verify.Verification{Order: order, Stack: api, Clock: r.Clock, By: "the simulator", Patience: time.Minute}
		hooked(change, v)
		_, err := job.Run(ctx, r, v.Job("00K0000000000000000000000A"), func(verify.Line) {})
		return err
	}
	begun := w.now
	j.over = func(s job.State) bool {
		if s.Begun.Before(epoch.Add(begun)) {
			return false // an earlier verification
		}
		lost := map[shard.DocID]bool{}
		for _, text := range s.Lines {
			var l verify.Line
			_ = json.Unmarshal(text, &l)
			if l.Outcome == "resync" {
				lost[l.Key] = true
			}
		}
		res, err := order.ResultOf(s)
		w.after(0, func() { done(slices.Sorted(maps.Keys(lost)), err != nil || res.InMotion > 0) })
		return true
	}
	j.tries = 0
	j.begin(w, 0)
}

// TestAVerificationHealsWhateverFails: programs that verify are killed, slow and stopped, and two
// run at a time. After the steps of the runbook every promise must hold again.
func TestAVerificationHealsWhateverFails(t *testing.T) {
	t.Parallel()
	sum, raised := &Jobbing{}, int64(0)
	for _, of := range []Loss{TableRestored, SinkRestored, SinkEmptied} {
		var last *Jobbing
		for _, r := range runs(t, 400, Swarm, func(seed uint64) (w *World) {
			w, last = healed(t, seed, Disaster{Loss: of}, jobEdits{}, nil)
			return w
		}) {
			sum.add(last)
			raised += r.Counts.Writes[shard.RAISE.String()]
		}
	}
	if sum.report(t); raised == 0 {
		t.Error("no row was raised: no simulated run reaches this case")
	}
}

// TestEveryMutantOfAVerificationIsNoticed breaks rules that a change of the verification might
// leave out.
func TestEveryMutantOfAVerificationIsNoticed(t *testing.T) {
	t.Parallel()
	if testing.Short() || raceEnabled {
		t.Skip("hundreds of worlds")
	}
	for name, m := range map[string]struct {
		of     Loss
		edits  jobEdits
		change func(*verify.Verification)
	}{
		"it raises no row": {TableRestored, jobEdits{}, func(v *verify.Verification) { v.Repair = false }},
		"it does not name what only the source has": {SinkEmptied, jobEdits{}, func(v *verify.Verification) {
			v.Stack = operatetest.API(v.Stack, silentStack{v.Stack})
		}},
		"it compares one page only": {SinkEmptied, jobEdits{}, func(v *verify.Verification) {
			v.Stack = operatetest.API(v.Stack, hastyStack{v.Stack})
		}},
		"SAVE RUN does not ask for the owner": {
			TableRestored, editingRuns(shard.SAVERUN, func(w *shard.Write) { without(w, shard.AttrOwner) }), nil,
		},
		"START RUN does not ask when the last lease began": {
			TableRestored, editingRuns(shard.STARTRUN, func(w *shard.Write) { without(w, shard.AttrRanAt) }), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := caught(t, 100, func(seed uint64) *World {
				w, _ := healed(t, seed, Disaster{Loss: m.of}, m.edits, m.change)
				return w
			})
			t.Log(r.Violations[0].Rule)
		})
	}
}

// silentStack does not report its findings about documents that only the source has.
type silentStack struct{ all operate.API }

func (s silentStack) Reconcile(ctx context.Context, o operate.ReconcileOrder) (operate.ReconcilePage, error) {
	page, err := s.all.Reconcile(ctx, o)
	page.Lines = slices.DeleteFunc(page.Lines, func(l operate.ReconcileLine) bool { return l.Outcome == "resync" })
	return page, err
}

// hastyStack ends after the first page.
type hastyStack struct{ all operate.API }

func (s hastyStack) Reconcile(ctx context.Context, o operate.ReconcileOrder) (operate.ReconcilePage, error) {
	page, err := s.all.Reconcile(ctx, o)
	page.Next = nil
	return page, err
}
