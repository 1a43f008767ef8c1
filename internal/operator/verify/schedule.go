// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// Scheduled carries on the verifications that the setting collections.<name>.verify orders. Any
// number of programs may call it at the same time: each verification is a job under a lease. All
// fields are required, except NewRun, Journal and Patience. It is not safe for concurrent use.
type Scheduled struct {
	Stack  operate.API // the operations of a [Verification], and those of jobs
	Config *config.Config
	Clock  clock.Clock
	NewRun func() string // returns a new ULID at each call; nil for random ones
	// Journal gets a note for each document that differed, so that the alarm drift is raised. It may
	// be nil.
	Journal journal.Journal
	// Patience is how long documents in motion are compared again, if none of them comes to rest. 0
	// means five minutes, and twice the quiet window in which a repair waits.
	Patience time.Duration
}

// ScheduledBy is the operator of a scheduled verification, for the audit and in the list of jobs.
const ScheduledBy = "schedule"

// ScheduledID returns the id of the job of a scheduled verification. sink is empty if the
// collection has only one sink.
func ScheduledID(c shard.Collection, sink string) string {
	if sink != "" {
		sink = "@" + sink
	}
	return "heal-" + string(c) + sink
}

// atLeastLeft is the time that a portion needs for a step.
const atLeastLeft = 5 * time.Second

// Due reports whether Portion would have work now.
func (s Scheduled) Due(ctx context.Context) (bool, error) {
	due, err := s.due(ctx)
	return len(due) > 0, err
}

// Portion carries on each verification that is due, for the given time together. A verification is
// due if it has not ended, or if the time verify.every has passed since it began. A verification
// that an operator stopped is due after that time. Portion returns when nothing is due, or after
// the time at a step's end: a step takes [job.StepTime] at most. The error names the verifications
// that failed; the next Portion continues them.
func (s Scheduled) Portion(ctx context.Context, most time.Duration) error {
	until := s.Clock.Now().Add(most)
	due, err := s.due(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, d := range due {
		if s.Clock.Now().After(until.Add(-atLeastLeft)) || ctx.Err() != nil {
			break
		}
		switch err := s.carry(ctx, d, until); {
		case err == nil, errors.Is(err, job.ErrWaits), errors.Is(err, job.ErrBusy), errors.Is(err, job.ErrLost):
			// the next portion continues, another program runs it, or an operator has stopped it
		default:
			failed = append(failed, fmt.Errorf("verify %s: %w", d.of.Collection, err))
		}
	}
	return errors.Join(append(failed, ctx.Err())...)
}

// scheduled is a verification that is due.
type scheduled struct {
	of    Order
	every time.Duration
	rate  float64
	most  int // how many documents it may remove
	saved time.Time
	quiet time.Duration
}

// due returns the verifications that are due. Those that were saved first come first, so one that
// always fails, or never ends, leaves time to the others.
func (s Scheduled) due(ctx context.Context) ([]scheduled, error) {
	names := s.Config.Verified()
	if len(names) == 0 {
		return nil, nil
	}
	listed, err := s.Stack.Jobs(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the verifications: %w", err)
	}
	states := map[string]job.State{}
	for _, j := range listed {
		states[j.ID] = j
	}
	var all []scheduled
	for _, name := range names {
		sinks := s.Config.SinksFor(name)
		for _, sink := range sinks {
			if len(sinks) == 1 {
				sink = ""
			}
			v := s.Config.Collections[name].Verify
			state := states[ScheduledID(shard.Collection(name), sink)]
			if !s.isDue(state, v.Every) {
				continue
			}
			all = append(all, scheduled{
				of: Order{
					Collection: shard.Collection(name), Sink: sink, FromSource: true, Repair: true,
					Parts: s.Stack.Spread(),
				},
				every: v.Every, rate: float64(v.Requests), most: v.MaxRemovals, saved: state.Saved,
				quiet: s.Config.For(name).Quiet,
			})
		}
	}
	slices.SortStableFunc(all, func(a, b scheduled) int { return a.saved.Compare(b.saved) })
	return all, nil
}

// isDue reports whether a verification with this state must begin or continue.
func (s Scheduled) isDue(state job.State, every time.Duration) bool {
	over := !s.Clock.Now().Before(state.Begun.Add(every))
	switch {
	case !state.Active(), state.Phase == job.Stopped && state.By != ScheduledBy:
		return over
	default:
		return true
	}
}

// patience is how long a scheduled verification compares documents in motion again, beyond twice
// the quiet window in which a repair waits.
const patience = 5 * time.Minute

// carry runs one verification until it is done, or until the given time.
func (s Scheduled) carry(ctx context.Context, d scheduled, until time.Time) error {
	v := &Verification{
		Order: d.of, Stack: s.Stack, Clock: s.Clock, By: ScheduledBy, Rate: d.rate,
		Patience:    cmp.Or(s.Patience, patience+2*d.quiet),
		MaxRemovals: d.most, Unattended: true,
	}
	run := func() string { return string(flight.NewID(s.Clock.Now())) } // a ULID
	if s.NewRun != nil {
		run = s.NewRun
	}
	j := v.Job(run())
	j.ID = ScheduledID(d.of.Collection, d.of.Sink)
	j.Anew = true // the settings may have changed
	j.Keep = d.every
	step := j.Step
	j.Step = func(ctx context.Context, from Cursor, out *job.Step[Line]) (Cursor, bool, error) {
		if s.Clock.Now().After(until) || from.NotBefore.After(until) {
			return from, false, job.ErrWaits
		}
		next, done, err := step(ctx, from, out)
		if errors.Is(err, reconcile.ErrMoving) { // the sink is paused or unhealthy, or the collection is being rebuilt
			err = fmt.Errorf("%w: %w", job.ErrWaits, err)
		}
		return next, done, err
	}
	r := job.Runner{Store: s.Stack.JobStore(), Clock: s.Clock, By: ScheduledBy}
	_, err := job.Run(ctx, r, j, func(l Line) { s.note(d, l) })
	return err
}

// note writes a note about a document that differed.
func (s Scheduled) note(d scheduled, l Line) {
	if s.Journal == nil || l.Difference == "" {
		return
	}
	sink := cmp.Or(d.of.Sink, s.Config.SinksFor(string(d.of.Collection))[0])
	s.Journal.Note(journal.Note{
		Step: journal.Drift, At: s.Clock.Now(), Sink: sink, Doc: l.Key,
		Detail: l.Difference + ": the scheduled verification found it, " + l.Outcome,
	})
}
