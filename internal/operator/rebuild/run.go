package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// run is a program that drives a rebuild.
type run struct {
	*Service
	p      Progress
	order  Order // of Start
	report func(Progress)
	token  shard.Token
	since  time.Time // when this program began to drive it, or announced it
	saved  time.Time
}

// take makes the caller the one that drives the sink's rebuild.
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
	if r.p, err = parse(old.Cursor); err != nil { // of a newer version of lull: it stays
		_, _ = s.table().Write(ctx, shard.EndRun(s.run(), r.token, old.Cursor))
		return nil, err
	}
	if r.p.Phase == Done || r.p.Phase == Aborted { // and its last word was lost
		r.p = Progress{}
	}
	return r, nil
}

// give ends the caller's turn. Whoever comes next goes on at once.
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
	_, _ = r.table().Write(last, shard.EndRun(r.run(), r.token, cursor)) // or its lease runs out
	return r.p, err
}

// text is what is kept of the progress.
func (r *run) text() string {
	p := r.p
	if len(p.Error) > 200 {
		p.Error = p.Error[:200]
	}
	text, _ := json.Marshal(p) // texts and numbers
	return string(text)
}

// save keeps how far the rebuild is. It fails where somebody else drives it.
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

// beat is a sign of life, where one is due.
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

// enter begins a phase.
func (r *run) enter(ctx context.Context, p Phase) error {
	r.p.Phase, r.p.Done, r.p.Error = p, 0, ""
	return r.save(ctx)
}

// sleep waits, and gives signs of life.
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

// outlast waits until every turn has ended that had read the health row before the given time. It
// also outlasts every request of a program that was killed before it.
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

// steps are what each phase does. Sourcing has none: somebody sends what the source has, and
// resumes.
var steps = map[Phase]func(*run, context.Context) error{
	Creating: (*run).create, Announced: (*run).announce, Filling: (*run).fill, Comparing: (*run).finish,
	Switching: (*run).finish, Tidying: (*run).tidy,
}

// drive takes the steps that are left.
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
		// Nothing else knows of it yet. An index that was made without an answer goes, too.
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

// announce tells every turn from now on.
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
	// What the source sends must reach the new index.
	if err := r.outlast(ctx, r.since); err != nil {
		return err
	}
	return r.enter(ctx, Sourcing)
}

// fill has the engine copy. Where it cannot, the comparison copies what is missing.
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
			r.p.Task = "" // it begins anew
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

// finish compares until nothing differs, and switches the name. It may be resumed anywhere.
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
		if row.RebuildAt != r.p.At {
			return errors.New("the sink's health row does not know of this rebuild any more: abort it, and begin anew")
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

// sourced waits until what the source has sent is written.
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

// unsealed finds out whether the name was switched by a program that was killed. Where it was not
// and cannot be any more, it takes the seal away.
func (r *run) unsealed(ctx context.Context) (switched bool, err error) {
	row, err := r.health(ctx)
	if err != nil {
		return false, err
	}
	sealed := row.RebuildAt == r.p.At && row.RebuildSeal != 0
	if sealed {
		// From when this program looks: the clock of the one that set the seal may be another.
		if named, err := r.named(ctx); named || err != nil {
			return named, err
		}
		if err := r.sleep(ctx, r.Clock.Now().Add(sealLife)); err != nil {
			return false, err
		}
	}
	if switched, err = r.named(ctx); switched || err != nil || !sealed {
		return switched, err
	}
	_, err = r.table().Ensure(ctx, shard.Unseal(r.SinkName, r.p.At, row.RebuildSeal),
		func(row shard.Row) bool { return row.RebuildSeal == 0 })
	if err != nil {
		return false, fmt.Errorf("take the seal away: %w", err)
	}
	return false, nil
}

// named reports whether the name stands for the new index.
func (r *run) named(ctx context.Context) (yes bool, err error) {
	err = r.call(ctx, callTime, func(ctx context.Context) error {
		at, err := r.Sink.Standing(ctx, r.p.Collection)
		yes = err == nil && at.Index == r.p.New
		return err
	})
	return yes, err
}

// seal forbids that writes are missed, unless one was since the comparison began.
func (r *run) seal(ctx context.Context, seen int64) (bool, error) {
	if err := r.enter(ctx, Switching); err != nil {
		return false, err
	}
	now := shard.MicrosOf(r.Clock.Now())
	_, err := r.table().Write(ctx, shard.Seal(r.SinkName, r.p.At, seen, now))
	refused, ok := shard.AsRefused(err)
	switch {
	case err == nil, ok && refused.Row.RebuildAt == r.p.At && refused.Row.RebuildSeal == now:
		return true, nil
	case ok && refused.Row.RebuildAt == r.p.At && refused.Row.RebuildSeal == 0:
		r.p.Missed = refused.Row.RebuildMissed
		return false, r.enter(ctx, Comparing)
	case ok:
		return false, errors.New("the sink's health row is not as this rebuild has left it: resume it")
	}
	return false, fmt.Errorf("seal the new index: %w", err)
}

// swap switches the name. Where nobody knows whether that has happened it looks, until it cannot
// happen any more.
func (r *run) swap(ctx context.Context) error {
	err := r.call(ctx, switchTime, func(ctx context.Context) error {
		return r.Sink.Switch(ctx, r.p.Collection, r.p.Old, r.p.New)
	})
	if err == nil {
		return r.end(ctx)
	}
	if ctx.Err() != nil {
		return err
	}
	switched, look := r.unsealed(ctx)
	switch {
	case look != nil:
		return errors.Join(err, look)
	case switched:
		return r.end(ctx)
	}
	return errors.Join(err, r.enter(ctx, Comparing))
}

// end lets turns write to the name alone again.
func (r *run) end(ctx context.Context) error {
	if err := r.forgotten(ctx); err != nil {
		return err
	}
	r.since = r.Clock.Now()
	r.audit("switched: %s stands for %s, no longer for %s", r.p.Name, r.p.New, r.p.Old)
	return r.enter(ctx, Tidying)
}

// forgotten takes the rebuild out of the health row.
func (r *run) forgotten(ctx context.Context) error {
	_, err := r.table().Ensure(ctx, shard.Rebuilt(r.SinkName, r.p.At),
		func(row shard.Row) bool { return row.RebuildAt != r.p.At })
	if err != nil {
		return fmt.Errorf("take the rebuild out of the sink's health row: %w", err)
	}
	return nil
}

// tidy takes away what nobody needs any more, a lease after the last turn could need it.
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

// abort gives the rebuild up. Nothing of it stays.
func (r *run) abort(ctx context.Context, row shard.Row) error {
	if r.p.Phase == Tidying {
		return fmt.Errorf("%w: resume it, to tidy up", ErrSwitched)
	}
	if row.RebuildAt == r.p.At && r.p.At != 0 {
		if switched, err := r.unsealed(ctx); switched || err != nil {
			if switched {
				err = fmt.Errorf("%w: resume it, to tidy up", ErrSwitched)
			}
			return err
		}
		if err := r.Sink.StopFill(ctx, r.p.New); err != nil {
			return err
		}
		if err := r.forgotten(ctx); err != nil {
			return err
		}
		// A turn that still writes to the new index would wait for its lease if it were gone.
		if err := r.outlast(ctx, r.Clock.Now()); err != nil {
			return err
		}
	}
	if err := r.Sink.Drop(ctx, r.p.New); err != nil {
		return err
	}
	r.p.Phase = Aborted
	r.audit("given up: %s is deleted", r.p.New)
	return nil
}
