// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// run is one step of a rebuild. It changes the cursor.
type run struct {
	*Service
	StepOrder
	p *Cursor
}

// Step does the part of a rebuild that begins at o.From, and returns where the next part begins. It
// ends within job.StepTime. After an error it may be repeated with o.Again. It returns job.ErrLost
// if the stored job is not at o.From.
func (s *Service) Step(ctx context.Context, o StepOrder) (Cursor, bool, error) {
	if err := s.checkPlace(ctx, o.From); err != nil {
		return o.From, false, err
	}
	c := o.From.clone()
	r := &run{s, o, &c}
	if o.First {
		if err := r.takeOver(ctx); err != nil {
			return o.From, false, err
		}
	}
	if o.Again || o.First {
		r.startAgain()
	}
	step, known := steps[c.Phase]
	switch {
	case c.Error != "": // the rebuild has halted
		return c, false, nil
	case o.Action == Abort:
		step, known = (*run).abort, true
	}
	if !known {
		return o.From, false, fmt.Errorf("a newer version of lull began the phase %q of this rebuild: use that version", c.Phase)
	}
	if err := step(r, ctx); err != nil {
		return o.From, false, err
	}
	return c, c.Phase == Done || c.Phase == Aborted, nil
}

// checkPlace returns an error if the job does not run, or is not at c. So a step touches only
// indices that the job's row names, and a program that was stopped begins no further step.
func (s *Service) checkPlace(ctx context.Context, c Cursor) error {
	state, err := s.ledger().Job(ctx, s.id())
	if err != nil {
		return err
	}
	at, err := job.CursorOf[Cursor](state)
	if err != nil {
		return err
	}
	if state.Phase != job.Running || at.text() != c.text() {
		return fmt.Errorf("%w: %s is %s, in the phase %s", job.ErrLost, state.ID, state.Phase, at.Phase)
	}
	return nil
}

// takeOver prepares the first step of a program.
func (r *run) takeOver(ctx context.Context) error {
	if err := r.adopt(ctx); err != nil {
		return err
	}
	r.p.By, r.p.Error, r.p.Why, r.p.MostPasses = r.By, "", "", r.p.Passes+maxPasses
	if r.Allow != nil {
		r.p.Allow = *r.Allow
	}
	switch {
	case r.Action == Start:
		r.audit("begun: %s will replace %s", r.p.New, r.p.Old)
		return nil
	case r.Action == Abort:
		return nil
	case r.p.Phase == Creating:
		r.halt(errors.New("the rebuild was killed before its index was made: abort it, and start again"))
	case r.p.Phase == Sourcing:
		r.p.Phase = Comparing
	}
	r.audit("resumed: %s", r.p.Phase)
	return nil
}

// startAgain sets the cursor to a place that is safe after an error, and for a new program. A
// program that was stopped may still be in its last step. So a new program waits longer, by the
// time of a step.
func (r *run) startAgain() {
	r.p.Tries = 0
	switch {
	case r.First && r.Action != Start:
		r.p.Waited = -job.StepTime
	case r.p.Stage != waiting && r.p.Stage != looking:
		r.p.Waited = 0
	}
	switch {
	case r.Action == Abort:
		r.p.Stage = aborting
	case r.p.Stage == aborted:
		r.halt(errors.New("the abort of this rebuild was interrupted: abort it again"))
	case r.p.Phase == Comparing:
		r.p.Stage = waiting
	case r.p.Phase == Switching:
		r.p.Stage = looking
	case r.First:
		r.p.Stage = ""
	}
}

// steps has the function of each phase. Sourcing has no function, because an operator sends the
// documents of the source, and then resumes the rebuild.
var steps = map[Phase]func(*run, context.Context) error{
	Creating: (*run).create, Announced: (*run).announce, Filling: (*run).fill, Comparing: (*run).compare,
	Switching: (*run).swap, Tidying: (*run).tidy,
}

// halt stops the rebuild with an error, because repeating the step cannot help. An operator can
// resume or abort the rebuild.
func (r *run) halt(err error) {
	r.p.Error = err.Error()
	for why, is := range halts {
		if errors.Is(err, is) {
			r.p.Why = why
		}
	}
}

// enter starts a phase.
func (r *run) enter(p Phase, s stage) { r.p.Phase, r.p.Stage, r.p.Done, r.p.Tries = p, s, 0, 0 }

// wait waits for a part of the time, and reports whether all of the time is over. Waited counts how
// long this program has waited since it took the rebuild over, announced it, or tried to switch the
// name.
func (r *run) wait(ctx context.Context, long time.Duration) (over bool, err error) {
	left := long - r.p.Waited
	if left <= 0 {
		return true, nil
	}
	left = min(left, beatEvery)
	if err := r.Clock.Sleep(ctx, left); err != nil {
		return false, err
	}
	r.p.Waited += left
	return false, nil
}

// outlast waits until all turns have ended that read the health row before its last change. By then
// the requests of a killed program have also ended.
func (r *run) outlast(ctx context.Context) (over bool, err error) {
	return r.wait(ctx, max(r.Config.Lease(r.SinkName)+r.Stale, lateFor))
}

func (r *run) audit(format string, args ...any) {
	r.Journal.Note(journal.Note{
		Step: journal.Rebuild, At: r.Clock.Now(), Sink: r.SinkName,
		Detail: fmt.Sprintf("rebuild of %s %s, by %s", r.p.Collection, fmt.Sprintf(format, args...), r.By),
	})
}

func (r *run) create(ctx context.Context) error {
	err := r.call(ctx, callTime, func(ctx context.Context) error {
		return r.Sink.Create(ctx, sink.NewIndex{
			Collection: r.p.Collection, Name: r.p.New, Like: r.p.Old, Mapping: r.Mapping, Settings: r.Settings,
		})
	})
	if err != nil {
		// Nothing else uses the new index yet. Create may have made it although it failed, so
		// delete it.
		if drop := r.call(context.WithoutCancel(ctx), callTime, func(ctx context.Context) error {
			return r.Sink.Drop(ctx, r.p.New)
		}); drop != nil {
			return err
		}
		r.halt(err)
		r.p.Phase = Aborted
		return nil
	}
	r.p.At = shard.MicrosOf(r.Clock.Now())
	r.enter(Announced, "")
	return nil
}

// announce writes the new index to the health row. Turns that start later write to both indices.
func (r *run) announce(ctx context.Context) error {
	if r.p.Stage == waiting {
		// Documents that the source sends must reach the new index, so wait for older turns to end.
		over, err := r.outlast(ctx)
		if over {
			r.enter(Sourcing, "")
		}
		return err
	}
	_, err := r.table().Ensure(ctx, shard.Rebuild(r.SinkName, r.p.Collection, r.p.New, r.p.At),
		func(row shard.Row) bool { return row.RebuildAt == r.p.At })
	if refused, ok := shard.AsRefused(err); ok {
		r.halt(fmt.Errorf("%w in sink %s: of %s", ErrUnderWay, r.SinkName, refused.Row.RebuildOf))
		return nil
	}
	if err != nil {
		return fmt.Errorf("announce the new index: %w", err)
	}
	if r.p.Waited = 0; r.p.Source {
		r.enter(Announced, waiting)
	} else {
		r.enter(Filling, "")
	}
	return nil
}

// fillTries is how often the engine is asked to copy, if its copy fails.
const fillTries = 4

// fill lets the engine copy the documents, and watches the copy for some seconds. If the engine
// cannot copy, the comparison copies the documents.
func (r *run) fill(ctx context.Context) error {
	began := r.Clock.Now()
	look, cancel := r.Clock.Deadline(ctx, callTime)
	defer cancel()
	done, err := r.Sink.Fill(look, sink.Fill{
		From: r.p.Old, Into: r.p.New, Task: r.p.Task, Rate: r.p.Rate,
		Started: func(task string) error { r.p.Task = task; return nil },
		Progress: func(n int64) {
			if r.p.Done = n; r.Clock.Now().Sub(began) >= beatEvery {
				cancel()
			}
		},
	})
	switch {
	case errors.Is(err, sink.ErrNoCopy):
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil && look.Err() != nil && r.p.Task != "": // the copy is under way
		r.p.Waited += r.Clock.Now().Sub(began)
		return nil
	case err != nil:
		r.p.Task = "" // the next try starts a new copy, unless a copy is under way
		if r.p.Tries++; r.p.Tries == fillTries {
			r.halt(fmt.Errorf("fill the new index: %w", err))
		}
		return r.Clock.Sleep(ctx, beatEvery)
	case len(done.Refused) > r.p.Allow:
		r.p.Task, r.p.Left, r.p.Refused = "", len(done.Refused), nil
		for _, d := range done.Refused[:min(len(done.Refused), maxNamed)] {
			r.p.Refused = append(r.p.Refused, Refusal{ID: short(d.ID), Reason: clip(d.Reason, maxReason)})
		}
		r.haltRefused("the engine's copy stopped at these, so there may be more")
		return nil
	}
	r.p.Task = ""
	r.enter(Comparing, waiting)
	return nil
}

// haltRefused halts the rebuild, because too many documents would be missing from the new index.
func (r *run) haltRefused(more string) {
	first := ""
	if len(r.p.Refused) > 0 {
		first = ", such as " + r.p.Refused[0].ID + " (" + r.p.Refused[0].Reason + ")"
	}
	r.halt(fmt.Errorf(
		"%d %w%s; %s: abort and fix the mapping or the source, or resume with --allow %d to leave them out",
		r.p.Left,
		ErrRefused,
		first,
		more,
		r.p.Left,
	))
}

// tidy deletes the indices that are no longer needed, after the last turn that could use them.
func (r *run) tidy(ctx context.Context) error {
	if over, err := r.outlast(ctx); !over {
		return err
	}
	if err := r.Sink.Settle(ctx, r.p.New); err != nil {
		return err
	}
	if r.p.Drop && r.p.Alias {
		if err := r.Sink.Drop(ctx, r.p.Old); err != nil {
			return err
		}
	}
	earlier, err := r.Sink.Earlier(ctx, r.p.Collection)
	if err != nil {
		return err
	}
	for _, index := range earlier[min(len(earlier), max(r.p.Keep, 0)):] {
		if err := r.Sink.Drop(ctx, index); err != nil {
			return err
		}
	}
	r.enter(Done, "")
	r.audit("done: %s points to %s", r.p.Name, r.p.New)
	return nil
}
