// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/operator/verify"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
)

// healing is the schedule of a stack that verifies its collection. Programs carry the verification
// on, one after the other and sometimes two at a time. Programs are killed, also after the injected
// failures have ended.
type healing struct {
	*Jobbing

	change func(*verify.Scheduled)
	from   time.Duration // a verification that began later must heal everything

	// The counts of the verifications that began after the loss.
	requests, repaired, drift int
}

// scheduledAPI is the API as a program of the schedule calls it.
type scheduledAPI struct{ jobAPI }

func (a scheduledAPI) AskSource(ctx context.Context, o operate.SourceOrder) (done operate.SourceAnswers, err error) {
	err = a.call(ctx, func(ctx context.Context, op *operate.Operator) (err error) {
		done, err = op.API().AskSource(ctx, o)
		return err
	})
	return done, err
}

func (a scheduledAPI) Publish(ctx context.Context, p operate.Publication) (done operate.Published, err error) {
	err = a.call(ctx, func(ctx context.Context, op *operate.Operator) (err error) {
		done, err = op.API().Publish(ctx, p)
		return err
	})
	return done, err
}

func (a scheduledAPI) Remove(ctx context.Context, o operate.RemoveOrder) (done operate.Removed, err error) {
	err = a.call(ctx, func(ctx context.Context, op *operate.Operator) (err error) {
		done, err = op.API().Remove(ctx, o)
		return err
	})
	return done, err
}

func (a scheduledAPI) Jobs(ctx context.Context) ([]job.State, error) {
	return a.j.ledger(a.v).Jobs(ctx)
}

func (a scheduledAPI) TakeJob(ctx context.Context, c job.Claim) (job.Lease, error) {
	return a.j.ledger(a.v).TakeJob(ctx, c)
}

func (a scheduledAPI) SaveJob(ctx context.Context, l job.Lease) error {
	return a.j.ledger(a.v).SaveJob(ctx, l)
}

func (a scheduledAPI) EndJob(ctx context.Context, l job.Lease) error {
	return a.j.ledger(a.v).EndJob(ctx, l)
}

// period is how often the simulated stack verifies its collection. The settings allow an hour at
// least, and a simulated run is shorter.
const period = 90 * time.Second

// healedBySchedule returns the simulated run of a seed in which data is lost. The scheduled
// verification heals it, and no operator does anything.
func healedBySchedule(t testing.TB, seed uint64, of Disaster, edits jobEdits, change func(*verify.Scheduled)) (*World,
	*healing,
) {
	t.Helper()
	h := &healing{Jobbing: jobbed(seed, verify.ScheduledID("content", ""), edits), change: change}
	h.known = nil
	w, o := fetchingFrom(t, seed, nil, func(o *Options) {
		o.Config.Collections = map[string]config.Collection{"content": {Verify: &config.Verify{
			Every: period, Requests: 10, MaxRemovals: 100,
		}}}
		o.Watch = h.see
	})
	h.origin, h.w = o, w
	d := newDice(seed, 0x6865616c+uint64(of.Loss))
	of.At = d.upTo(w.options.Upstream.Calm)
	of.Backup, of.Live = d.upTo(of.At), true
	of.Heal = func(w *World, done func([]shard.DocID, bool)) {
		h.heal(w, func() { done(nil, false) })
	}
	w.await(&of)
	return w, h
}

// heal runs the schedule until everything must be healed.
func (h *healing) heal(w *World, done func()) {
	lost := w.now
	// Nothing fails any more, all events have arrived, and no document is young.
	quiet := func() time.Duration {
		return max(w.options.Upstream.Calm, w.oracle.lastDue, lost) + clock.Trust + time.Minute
	}
	h.whole = func(s job.State, _ func(string)) {
		if s.Begun.After(epoch.Add(lost)) {
			found, repaired, _, _ := verify.Drift(s)
			h.drift, h.repaired, h.requests = h.drift+found, h.repaired+repaired, h.requests+s.Counts["requests"]
		}
	}
	programs := 0
	var next func()
	next = func() {
		if h.from == 0 && w.calm && w.now >= quiet() {
			h.from = w.now
		}
		s := h.state()
		if h.from > 0 && s.Phase == job.Done && !s.Begun.Before(epoch.Add(h.from)) {
			h.judge(s)
			w.after(0, done)
			return
		}
		if programs++; programs > 400 {
			w.oracle.always("a verification ends", fmt.Sprintf("%+v", s))
			w.after(0, done)
			return
		}
		if h.dice.chance(0.2) { // a second program at the same time
			w.after(h.dice.upTo(20*time.Second), func() { h.carry(func() {}) })
		}
		w.after(time.Second+h.dice.upTo(15*time.Second), func() { h.carry(next) })
	}
	next()
}

// carry is one program that the schedule starts.
func (h *healing) carry(then func()) {
	w := h.w
	w.operator++
	w.invoke("operator", patience, func(ctx context.Context, v *invocation) {
		if h.dice.chance(0.25) {
			v.doom = 1 + h.dice.IntN(60)
		}
		api := operatetest.API(operate.API{}, scheduledAPI{jobAPI{h.Jobbing, v}})
		s := verify.Scheduled{
			Stack: api, Config: w.cfg, Clock: v.clock,
			NewRun:   func() string { return string(w.newID(epoch.Add(w.now))) },
			Patience: time.Minute,
		}
		hooked(h.change, &s)
		_ = s.Portion(ctx, 5*time.Second+h.dice.upTo(time.Minute)) // the next portion continues
	}, func(died error) {
		if died != nil {
			h.killed++
		}
		w.operator--
		then()
	})
}

// judge checks that every document in the sink and its row are what the source shows.
func (h *healing) judge(s job.State) {
	w := h.w
	for _, id := range slices.Sorted(maps.Keys(w.refs)) {
		doc := shard.DocID("content#" + id)
		want, known := w.objects[w.refs[id]]
		row := w.table.row(doc)
		if !known || row.Pending > row.Committed {
			continue // a dead letter needs its operator
		}
		stored, there, _ := w.pipeOf(doc).engine.docs.Get(background, doc) // fails only if its context ends
		if !there && !row.Exists() {
			continue // nothing names the document: only an export can
		}
		shown, _ := stateOf(stored.Document)
		agree := there && stored.Key == row.Committed.String() || !there && row.CommittedOp != shard.Put
		if there == want.Removed || there && shown != w.content(want.Version) || !agree {
			w.oracle.always("a loss is healed within one period", fmt.Sprintf(
				"%s: in the sink: %t, state %d, %s; the row: %s %s; the source: %+v; the verification: %v %s", doc, there, shown,
				stored.Key, row.CommittedOp, row.Committed, want, s.Counts, s.Lines))
		}
	}
}

func (a scheduledAPI) call(ctx context.Context, do func(ctx context.Context, o *operate.Operator) error) error {
	return a.jobAPI.call(ctx, func(ctx context.Context, o *operate.Operator) error {
		v, ok := o.Journal.(*invocation)
		if !ok {
			return errors.New("no invocation")
		}
		o.Fetch = originClient{objectClient{v}, a.j.origin}.Fetch
		return do(ctx, o)
	})
}

// scheduledLosses are the losses that a verification heals without an operator.
var scheduledLosses = map[string]Loss{
	"the table is restored":            TableRestored,
	"rows are deleted by hand":         RowsDeleted,
	"the sink is restored":             SinkRestored,
	"the sink is created again, empty": SinkEmptied,
}

// TestTheScheduleHealsEveryLoss: data is lost while everything runs and fails. Programs of the
// schedule are killed, and two run at a time. One period later the sink and the rows are what the
// source shows, and no operator has done anything.
func TestTheScheduleHealsEveryLoss(t *testing.T) {
	t.Parallel()
	for name, of := range scheduledLosses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var last *healing
			sum, drift, repaired, requests := &Jobbing{}, 0, 0, 0
			for range runs(t, 100, Swarm, func(seed uint64) (w *World) {
				w, last = healedBySchedule(t, seed, Disaster{Loss: of}, jobEdits{}, nil)
				return w
			}) {
				sum.add(last.Jobbing)
				drift, repaired, requests = drift+last.drift, repaired+last.repaired, requests+last.requests
			}
			t.Logf("%d documents differed, %d were repaired, %d requests; %d programs killed, %d late writes, %d times "+
				"continued, %d verifications", drift, repaired, requests, sum.killed, sum.late, sum.continued, sum.done)
			if min(repaired, requests, sum.killed, sum.late, sum.continued, sum.done) == 0 {
				t.Error("no simulated run reaches this case")
			}
		})
	}
}

// TestEveryMutantOfTheScheduleIsNoticed breaks rules that a change of the verification might leave
// out.
func TestEveryMutantOfTheScheduleIsNoticed(t *testing.T) {
	t.Parallel()
	if testing.Short() || raceEnabled {
		t.Skip("hundreds of worlds")
	}
	stack := func(edit func(all operate.API) any) func(*verify.Scheduled) {
		return func(s *verify.Scheduled) { s.Stack = operatetest.API(s.Stack, edit(s.Stack)) }
	}
	for name, m := range map[string]struct {
		of     Loss
		edits  jobEdits
		change func(*verify.Scheduled)
	}{
		"it asks only about documents of the sink": {SinkEmptied, jobEdits{}, stack(func(all operate.API) any {
			return pageStack{all, func(p *operate.ReconcilePage) { p.Absent = nil }}
		})},
		"it asks only about documents that the sink lacks": {SinkRestored, jobEdits{}, stack(func(all operate.API) any {
			return pageStack{all, func(p *operate.ReconcilePage) { p.Seen = nil }}
		})},
		"it compares one page only": {SinkEmptied, jobEdits{}, stack(func(all operate.API) any {
			return pageStack{all, func(p *operate.ReconcilePage) { p.Next = nil }}
		})},
		"a touch belongs to no resync run": {SinkEmptied, jobEdits{}, stack(func(all operate.API) any {
			return touchStack{all, func(p *operate.Publication) { p.Run = "" }}
		})},
		"a touch is not sent": {SinkRestored, jobEdits{}, stack(func(all operate.API) any {
			return touchStack{all, func(p *operate.Publication) { p.Messages = nil }}
		})},
		"it raises no row": {RowsDeleted, jobEdits{}, stack(func(all operate.API) any { return dryStack{all} })},
		"an unfinished verification is not continued": {SinkEmptied, jobEdits{}, stack(func(all operate.API) any {
			return forgetfulStack{all}
		})},
		"SAVE RUN does not ask for the owner": {
			SinkEmptied, editingRuns(shard.SAVERUN, func(w *shard.Write) { without(w, shard.AttrOwner) }), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := caught(t, 150, func(seed uint64) *World {
				w, _ := healedBySchedule(t, seed, Disaster{Loss: m.of}, m.edits, m.change)
				return w
			})
			t.Log(r.Violations[0].Rule)
		})
	}
}

// pageStack changes the pages of a comparison.
type pageStack struct {
	all  operate.API
	edit func(*operate.ReconcilePage)
}

func (s pageStack) Reconcile(ctx context.Context, o operate.ReconcileOrder) (operate.ReconcilePage, error) {
	page, err := s.all.Reconcile(ctx, o)
	s.edit(&page)
	return page, err
}

// touchStack changes the repairs.
type touchStack struct {
	all  operate.API
	edit func(*operate.Publication)
}

func (s touchStack) Publish(ctx context.Context, p operate.Publication) (operate.Published, error) {
	s.edit(&p)
	return s.all.Publish(ctx, p)
}

// dryStack writes no row.
type dryStack struct{ all operate.API }

func (s dryStack) Reconcile(ctx context.Context, o operate.ReconcileOrder) (operate.ReconcilePage, error) {
	o.DryRun = true
	return s.all.Reconcile(ctx, o)
}

// forgetfulStack says that every verification is done.
type forgetfulStack struct{ all operate.API }

func (s forgetfulStack) Jobs(ctx context.Context) ([]job.State, error) {
	all, err := s.all.Jobs(ctx)
	for i := range all {
		all[i].Phase, all[i].Begun = job.Done, epoch.Add(365*24*time.Hour)
	}
	return all, err
}
