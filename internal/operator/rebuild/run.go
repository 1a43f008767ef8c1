package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// run is one program's drive of a rebuild.
type run struct {
	*Service
	p      Progress
	order  Order // of Start
	report func(Progress)
	token  shard.Token
	since  time.Time // when this program started to drive the rebuild, or announced it
	saved  time.Time
	sealed shard.Micros    // when this program set the seal
	out    map[string]bool // documents that this comparison leaves out
}

// take gets the lease of the sink's rebuild.
func (s *Service) take(ctx context.Context, report func(Progress)) (*run, error) {
	now := s.Clock.Now()
	r := &run{Service: s, report: report, token: s.NewToken(), since: now, saved: now}
	w := shard.StartRun(s.run(), r.token, shard.MicrosOf(now), shard.MicrosOf(now.Add(holdFor)), 0)
	old, err := s.table().Ensure(ctx, w, func(row shard.Row) bool { return row.Owner == r.token })
	if refused, ok := shard.AsRefused(err); ok {
		return nil, fmt.Errorf("%w, until %s at least: if it was killed, wait until then", ErrBusy,
			refused.Row.LeaseUntil.Time().Format(time.RFC3339))
	}
	if err != nil {
		return nil, fmt.Errorf("take the rebuild over: %w", err)
	}
	if r.p, err = parse(old.Cursor); err != nil { // a newer version of lull wrote it: keep it
		_, _ = s.table().Write(ctx, shard.EndRun(s.run(), r.token, old.Cursor))
		return nil, err
	}
	if r.p.Phase == Done || r.p.Phase == Aborted { // the write that ended it was lost
		r.p = Progress{}
	}
	return r, nil
}

// give releases the lease, so that another program can continue at once.
func (r *run) give(ctx context.Context, err error) (Progress, error) {
	cursor := ""
	if err != nil && !errors.Is(err, ErrUnderWay) {
		r.p.Error = err.Error()
	}
	if r.p.Phase != "" && r.p.Phase != Done && r.p.Phase != Aborted {
		cursor = r.text()
	}
	r.tell()
	last, cancel := r.Clock.Deadline(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = r.table().Write(last, shard.EndRun(r.run(), r.token, cursor)) // if this fails, the lease expires
	return r.p, err
}

// text returns the progress as stored in the row.
func (r *run) text() string {
	p := r.p
	if len(p.Error) > 200 {
		p.Error = p.Error[:200]
	}
	text, _ := json.Marshal(p) // cannot fail: texts and numbers
	return string(text)
}

// save stores the progress and extends the lease. It fails if another program drives the rebuild.
func (r *run) save(ctx context.Context) error {
	now := r.Clock.Now()
	w := shard.SaveRun(r.run(), r.token, shard.MicrosOf(now.Add(holdFor)), r.text())
	if _, err := r.table().Write(ctx, w); err != nil {
		if _, refused := shard.AsRefused(err); refused {
			return fmt.Errorf("%w: this one was silent for too long", ErrBusy)
		}
		return fmt.Errorf("keep how far the rebuild is: %w", err)
	}
	r.saved = now
	r.tell()
	return nil
}

// beat saves the progress if the last save is beatEvery ago.
func (r *run) beat(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.Clock.Now().Sub(r.saved) < beatEvery {
		r.tell()
		return nil
	}
	return r.save(ctx)
}

func (r *run) tell() {
	if r.report != nil {
		r.report(r.p)
	}
}

// enter starts a phase.
func (r *run) enter(ctx context.Context, p Phase) error {
	r.p.Phase, r.p.Done, r.p.Error = p, 0, ""
	return r.save(ctx)
}

// sleep waits, and extends the lease while it waits.
func (r *run) sleep(ctx context.Context, until time.Time) error {
	for {
		left := until.Sub(r.Clock.Now())
		if left <= 0 {
			return ctx.Err()
		}
		if err := r.Clock.Sleep(ctx, min(left, beatEvery)); err != nil {
			return err
		}
		if err := r.beat(ctx); err != nil {
			return err
		}
	}
}

// outlast waits until every turn that read the health row before since has ended. Requests of a
// program that was killed before since have ended by then, too.
func (r *run) outlast(ctx context.Context, since time.Time) error {
	return r.sleep(ctx, since.Add(max(r.Config.Lease(r.SinkName)+r.Stale, lateFor)))
}

func (r *run) health(ctx context.Context) (shard.Row, error) {
	row, err := r.table().One(ctx, shard.HealthRow(r.SinkName), shard.Consistent)
	if err != nil {
		return row, fmt.Errorf("read the sink's health row: %w", err)
	}
	if r.p.At != 0 && row.RebuildAt == r.p.At {
		r.p.Missed = row.RebuildMissed
	}
	return row, nil
}

// awake returns an error if an operator has paused the sink.
func (r *run) awake(ctx context.Context) error {
	row, err := r.health(ctx)
	if err == nil && row.PausedAt != 0 {
		err = ErrPaused
	}
	return err
}

// call bounds a request.
func (r *run) call(ctx context.Context, limit time.Duration, f func(ctx context.Context) error) error {
	call, cancel := r.Clock.Deadline(ctx, limit)
	defer cancel()
	return f(call)
}

func (r *run) audit(format string, args ...any) {
	r.Journal.Note(journal.Note{
		Step: journal.Rebuild, At: r.Clock.Now(), Sink: r.SinkName,
		Detail: fmt.Sprintf("rebuild of %s %s, by %s", r.p.Collection, fmt.Sprintf(format, args...), r.p.By),
	})
}

// steps has the function of each phase. Sourcing has none: an operator sends the documents of the
// source, and then resumes.
var steps = map[Phase]func(*run, context.Context) error{
	Creating: (*run).create, Announced: (*run).announce, Filling: (*run).fill, Comparing: (*run).finish,
	Switching: (*run).finish, Tidying: (*run).tidy,
}

// drive runs the remaining steps.
func (r *run) drive(ctx context.Context) error {
	for r.p.Phase != Sourcing && r.p.Phase != Done {
		step, known := steps[r.p.Phase]
		if !known {
			return fmt.Errorf("its phase %q is of a newer version of lull", r.p.Phase)
		}
		if err := step(r, ctx); err != nil {
			return err
		}
	}
	if r.p.Phase == Done {
		r.audit("done: %s stands for %s", r.p.Name, r.p.New)
	}
	return nil
}

func (r *run) create(ctx context.Context) error {
	err := r.call(ctx, callTime, func(ctx context.Context) error {
		return r.Sink.Create(ctx, sink.NewIndex{
			Collection: r.p.Collection, Name: r.p.New, Like: r.p.Old, Mapping: r.order.Mapping,
			Settings: r.order.Settings,
		})
	})
	if err != nil {
		// Nothing else uses the new index yet. Create may have made it although it failed, so
		// delete it.
		if drop := r.call(context.WithoutCancel(ctx), callTime, func(ctx context.Context) error {
			return r.Sink.Drop(ctx, r.p.New)
		}); drop == nil {
			r.p.Phase = Aborted
		}
		return err
	}
	r.p.At = shard.MicrosOf(r.Clock.Now())
	return r.enter(ctx, Announced)
}

// announce records the new index in the health row. Turns that start later write to it, too.
func (r *run) announce(ctx context.Context) error {
	_, err := r.table().Ensure(ctx, shard.Rebuild(r.SinkName, r.p.Collection, r.p.New, r.p.At),
		func(row shard.Row) bool { return row.RebuildAt == r.p.At })
	if refused, ok := shard.AsRefused(err); ok {
		return fmt.Errorf("%w in sink %s: of %s", ErrUnderWay, r.SinkName, refused.Row.RebuildOf)
	}
	if err != nil {
		return fmt.Errorf("announce the new index: %w", err)
	}
	r.since = r.Clock.Now()
	if !r.p.Source {
		return r.enter(ctx, Filling)
	}
	// Documents that the source sends must reach the new index, so wait for older turns to end.
	if err := r.outlast(ctx, r.since); err != nil {
		return err
	}
	return r.enter(ctx, Sourcing)
}

// fill lets the engine copy the documents. If the engine cannot, the comparison copies them.
func (r *run) fill(ctx context.Context) error {
	var beat error
	done, err := r.Sink.Fill(ctx, sink.Fill{
		From: r.p.Old, Into: r.p.New, Task: r.p.Task, Rate: r.p.Rate,
		Started: func(task string) error {
			r.p.Task = task
			return r.save(ctx)
		},
		Progress: func(n int64) {
			r.p.Done = n
			if beat == nil {
				beat = r.beat(ctx)
			}
		},
	})
	switch {
	case errors.Is(err, sink.ErrNoCopy):
	case err != nil:
		if ctx.Err() == nil {
			r.p.Task = "" // the next try starts a new copy
		}
		return fmt.Errorf("fill the new index: %w", err)
	case beat != nil:
		return beat
	case len(done.Refused) > r.p.Allow:
		r.p.Task, r.p.Left, r.p.Refused = "", len(done.Refused), nil
		for _, d := range done.Refused[:min(len(done.Refused), maxNamed)] {
			r.p.Refused = append(r.p.Refused, Refusal(d))
		}
		return r.refused("the engine stopped at the first ones, there may be more")
	}
	r.p.Task = ""
	return r.enter(ctx, Comparing)
}

// refused says that too many documents would be missing.
func (r *run) refused(more string) error {
	first := ""
	if len(r.p.Refused) > 0 {
		first = ", such as " + r.p.Refused[0].ID + " (" + r.p.Refused[0].Reason + ")"
	}
	return fmt.Errorf(
		"%d %w%s; %s: abort and fix the mapping or the source, or resume with --allow %d to leave them out",
		r.p.Left,
		ErrRefused,
		first,
		more,
		r.p.Left,
	)
}

// finish compares until no write is missed, and then switches the name. It may be resumed at any
// point.
func (r *run) finish(ctx context.Context) error {
	switched, err := r.unsealed(ctx)
	switch {
	case err != nil:
		return err
	case switched:
		return r.end(ctx)
	case r.p.Phase != Comparing:
		if err := r.enter(ctx, Comparing); err != nil {
			return err
		}
	}
	if err := r.outlast(ctx, r.since); err != nil {
		return err
	}
	if err := r.Sink.StopFill(ctx, r.p.New); err != nil {
		return err
	}
	if err := r.sourced(ctx); err != nil {
		return err
	}
	for range maxPasses {
		row, err := r.health(ctx)
		if err != nil {
			return err
		}
		switch {
		case row.PausedAt != 0:
			return ErrPaused
		case row.RebuildAt != r.p.At:
			return errors.New("the sink's health row does not know of this rebuild any more: abort it, and begin anew")
		}
		// A write that is counted as missed may still arrive. So may the write of a turn that was
		// killed.
		if err := r.sleep(ctx, r.Clock.Now().Add(lateFor)); err != nil {
			return err
		}
		if err := r.pass(ctx); err != nil {
			return err
		}
		sealed, err := r.seal(ctx, row.RebuildMissed)
		if err != nil {
			return err
		}
		if sealed {
			return r.swap(ctx)
		}
	}
	return fmt.Errorf(
		"after %d comparisons writes are still missed by the new index, %d by now: find out why, and resume",
		maxPasses,
		r.p.Missed,
	)
}

// sourced waits until the documents that the source sent are written.
func (r *run) sourced(ctx context.Context) error {
	for idle := 0; r.p.Source && r.Idle != nil && idle < 2; {
		empty, err := r.Idle(ctx)
		if err != nil {
			return fmt.Errorf("look at the bulk lane: %w", err)
		}
		if idle++; !empty {
			idle = 0
		}
		if err := r.sleep(ctx, r.Clock.Now().Add(beatEvery)); err != nil {
			return err
		}
	}
	return nil
}

// tidy deletes the indices that are no longer needed, after the last turn that could use them.
func (r *run) tidy(ctx context.Context) error {
	if err := r.outlast(ctx, r.since); err != nil {
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
	return r.enter(ctx, Done)
}
