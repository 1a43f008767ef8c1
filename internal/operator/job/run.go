// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
)

// Step collects what one step of a job did. L is the type of a line of the answer.
type Step[L any] struct {
	counts map[string]int
	lines  []L
	units  int
	total  int
	costs  int
}

// Count counts n outcomes.
func (s *Step[L]) Count(outcome string, n int) {
	if n != 0 {
		s.counts[outcome] += n
	}
}

// Say adds a line to the answer.
func (s *Step[L]) Say(l L) { s.lines = append(s.lines, l) }

// Did adds n units of work. The rate limit counts them.
func (s *Step[L]) Did(n int) { s.units += n }

// Costs makes the rate limit count n units for this step, instead of the units of Did.
func (s *Step[L]) Costs(n int) { s.costs = n }

// Expect says how many units the whole job has.
func (s *Step[L]) Expect(n int) { s.total = n }

// Job is one kind of work. C is the type of its cursor, and L of a line of its answer. Both are
// stored as JSON.
type Job[C, L any] struct {
	ID   string // unique in a stack: the verb, and the name of its object, such as backfill-content@search
	Verb string
	Args any // the arguments; a stopped job continues only with the same arguments
	// Anew begins the job again at First if the stopped job had other arguments. A job may set Anew
	// only if its steps do not need the work that the stopped job left undone. Without Anew the runner
	// refuses other arguments.
	Anew bool
	// Private keeps the errors of the steps out of the table. They may contain data that the table
	// must not store.
	Private bool
	// First is the cursor of a job that begins.
	First C
	Seen  *time.Time // see [Claim]
	// Keep is how long after its begin the list keeps the job, although it is done. A schedule needs
	// the time of the begin.
	Keep time.Duration
	// Step does the part of the work that begins at from, and returns where the next part begins. A
	// step ends within StepTime. It may be repeated after an error or a crash.
	Step func(ctx context.Context, from C, s *Step[L]) (next C, done bool, err error)
	// Resume is the command that continues the job. It is empty if the command that began the job also
	// continues it.
	Resume string
	// Final reports whether a step must not be repeated after this error. If Final is nil, no error is
	// final.
	Final func(error) bool
	// Tries is how often a step is tried; 0 means four times.
	Tries int
}

// Runner runs jobs. All fields are required, except Rate, Report and Dry. With Dry, Store may be
// nil.
type Runner struct {
	Store Store
	Clock clock.Clock
	By    string  // who runs the job
	Rate  float64 // units a second, 0 for no limit
	// Dry runs a job without storing anything. The job begins at First, and cannot continue later.
	Dry bool
	// Report is called with the state before the first step, after each step and at the end. It may be
	// nil.
	Report func(State)

	private bool
}

// StepTime is how long a step may take.
const StepTime = time.Minute

// beatEvery is how often the lease is extended during a long pause.
const beatEvery = 20 * time.Second

// retries returns the back-off between the tries of a step. Job.Tries replaces the number of tries.
func retries() backoff.Policy {
	return backoff.Policy{Min: time.Second, Max: 10 * time.Second, Tries: 4}
}

// Run begins or continues a job, and runs it to its end. It calls say with each line of a step
// after the step was stored. The state is also valid if Run returns an error. If ctx ends, the job
// is stopped and can continue later.
func Run[C, L any](ctx context.Context, r Runner, j Job[C, L], say func(L)) (State, error) {
	r.private = j.Private
	lease, at, err := begin(ctx, r, j)
	if err != nil {
		return lease.State, err
	}
	began, paid := r.Clock.Now(), 0
	for {
		var s Step[L]
		var done bool
		at, done, s, err = try(ctx, r, j, &lease, at)
		if err != nil {
			return r.end(ctx, lease, err)
		}
		before := lease.State
		if lease.State, err = add(lease.State, at, s); err != nil {
			return r.end(ctx, lease, err)
		}
		if done {
			state, err := r.end(ctx, lease, nil)
			if err == nil {
				tell(s.lines, say)
			}
			return state, err
		}
		if err := r.save(ctx, &lease); err != nil {
			if errors.Is(err, ErrLarge) {
				lease.State = before
			}
			return r.end(ctx, lease, err)
		}
		tell(s.lines, say)
		if paid += cmp.Or(s.costs, s.units); r.Rate > 0 {
			due := began.Add(time.Duration(float64(paid) / r.Rate * float64(time.Second)))
			err = r.wait(ctx, &lease, due)
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return r.end(ctx, lease, err)
		}
	}
}

// begin takes the lease, and returns the cursor of the first step.
func begin[C, L any](ctx context.Context, r Runner, j Job[C, L]) (lease Lease, at C, err error) {
	args, err := json.Marshal(j.Args)
	if err != nil {
		return lease, at, fmt.Errorf("arguments of job %s: %w", j.ID, err)
	}
	first, err := json.Marshal(j.First)
	if err != nil {
		return lease, at, fmt.Errorf("first cursor of job %s: %w", j.ID, err)
	}
	c := Claim{ID: j.ID, Verb: j.Verb, Args: args, First: first, Anew: j.Anew, Seen: j.Seen, Keep: j.Keep, By: r.By}
	if r.Dry {
		now := r.Clock.Now().UTC()
		lease.State = State{
			ID: j.ID, Verb: j.Verb, Phase: Running, Args: args, At: first, Counts: map[string]int{}, By: r.By,
			Begun: now, Saved: now,
		}
	} else if lease, err = r.Store.TakeJob(ctx, c); err != nil {
		return lease, at, err
	}
	if lease.State.Counts == nil { // JSON leaves out an empty map
		lease.State.Counts = map[string]int{}
	}
	if at, err = CursorOf[C](lease.State); err != nil {
		_, err = r.end(ctx, lease, err)
		return lease, at, err
	}
	r.report(lease.State)
	return lease, at, nil
}

// try does one step, and repeats it after an error that is not final. It extends the lease before
// each repetition, because the tries together may take longer than the lease lasts.
func try[C, L any](ctx context.Context, r Runner, j Job[C, L], l *Lease, from C) (next C, done bool, s Step[L],
	err error,
) {
	p := retries().WithClock(r.Clock)
	p.Tries = cmp.Or(j.Tries, p.Tries)
	for n := 0; ; n++ {
		s = Step[L]{counts: map[string]int{}}
		limited, cancel := r.Clock.Deadline(ctx, StepTime)
		next, done, err = j.Step(limited, from, &s)
		cancel()
		switch {
		case err == nil, ctx.Err() != nil, n+1 == p.Tries, backoff.Final(err), errors.Is(err, ErrWaits),
			j.Final != nil && j.Final(err):
			return next, done, s, err
		}
		if slept := r.Clock.Sleep(ctx, p.Delay(n)); slept != nil {
			return next, done, s, err
		}
		if failed := r.save(ctx, l); failed != nil { // the lease may run out during the next try
			return next, done, s, failed
		}
	}
}

// add returns the state after a step.
func add[C, L any](state State, at C, s Step[L]) (State, error) {
	state = state.clone()
	text, err := json.Marshal(at)
	if err != nil {
		return state, fmt.Errorf("cursor of job %s: %w", state.ID, err)
	}
	state.At, state.Steps, state.Did = text, state.Steps+1, state.Did+s.units
	if s.total > 0 {
		state.Total = s.total
	}
	for outcome, n := range s.counts {
		if state.Counts[outcome] += n; state.Counts[outcome] == 0 {
			delete(state.Counts, outcome)
		}
	}
	size := 0
	for _, l := range state.Lines {
		size += len(l)
	}
	for _, l := range s.lines[:min(len(s.lines), max(0, MaxLines-len(state.Lines)))] {
		text, err := json.Marshal(l)
		if err != nil {
			return state, fmt.Errorf("line of job %s: %w", state.ID, err)
		}
		if size += len(text); size > maxLineBytes {
			break
		}
		state.Lines = append(state.Lines, text)
	}
	return state, nil
}

func tell[L any](lines []L, say func(L)) {
	for _, l := range lines {
		say(l)
	}
}

func (r Runner) report(s State) {
	if r.Report != nil {
		r.Report(s)
	}
}

// save stores the state and extends the lease.
func (r Runner) save(ctx context.Context, l *Lease) error {
	l.State.Saved = r.Clock.Now().UTC()
	r.report(l.State)
	if r.Dry {
		return nil
	}
	return r.Store.SaveJob(ctx, *l)
}

// wait waits until a time. During a long wait it extends the lease.
func (r Runner) wait(ctx context.Context, l *Lease, until time.Time) error {
	for {
		left := until.Sub(r.Clock.Now())
		if left <= 0 {
			return nil
		}
		if err := r.Clock.Sleep(ctx, min(left, beatEvery)); err != nil {
			return err
		}
		if left > beatEvery {
			if err := r.save(ctx, l); err != nil {
				return err
			}
		}
	}
}

// endTime bounds the last save of a job.
const endTime = 5 * time.Second

// end stores how the job ended, and releases the lease.
func (r Runner) end(ctx context.Context, l Lease, err error) (State, error) {
	s := &l.State
	switch s.Saved = r.Clock.Now().UTC(); {
	case err == nil:
		s.Phase = Done
	case ctx.Err() != nil, errors.Is(err, ErrWaits):
		s.Phase, s.Error = Stopped, ""
	default:
		s.Phase, s.Error = Failed, err.Error()
		if r.private {
			s.Error = "the error is not stored: see the output of the command that ran the job"
		}
	}
	r.report(*s)
	if r.Dry || errors.Is(err, ErrLost) {
		return *s, err
	}
	last, cancel := r.Clock.Deadline(context.WithoutCancel(ctx), endTime)
	defer cancel()
	// If EndJob fails, the lease runs out by itself.
	if failed := r.Store.EndJob(last, l); failed != nil && err == nil {
		return *s, failed
	}
	return *s, err
}
