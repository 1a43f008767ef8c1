package rebuild

import (
	"context"
	"errors"
	"fmt"

	"github.com/lullhq/lull/internal/shard"
)

// unsealed reports whether a program that was killed has switched the name. If it has not, and no
// longer can, unsealed removes its seal.
func (r *run) unsealed(ctx context.Context) (switched bool, err error) {
	row, err := r.health(ctx)
	if err != nil {
		return false, err
	}
	sealed := row.RebuildAt == r.p.At && row.RebuildSeal != 0
	if sealed {
		// Count from now, by this program's clock: the program that set the seal may have had
		// another clock.
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

// named reports whether the name points to the new index.
func (r *run) named(ctx context.Context) (yes bool, err error) {
	err = r.call(ctx, callTime, func(ctx context.Context) error {
		at, err := r.Sink.Standing(ctx, r.p.Collection)
		yes = err == nil && at.Index == r.p.New
		return err
	})
	return yes, err
}

// seal sets the seal, so that no write may be missed from now on. It returns false if a write was
// missed since the comparison started.
func (r *run) seal(ctx context.Context, seen int64) (bool, error) {
	if err := r.enter(ctx, Switching); err != nil {
		return false, err
	}
	now := shard.MicrosOf(r.Clock.Now())
	_, err := r.table().Write(ctx, shard.Seal(r.SinkName, r.p.At, seen, now))
	refused, ok := shard.AsRefused(err)
	switch {
	case err == nil, ok && refused.Row.RebuildAt == r.p.At && refused.Row.RebuildSeal == now:
		r.sealed = now
		return true, nil
	case ok && refused.Row.RebuildAt == r.p.At && refused.Row.RebuildSeal == 0:
		r.p.Missed = refused.Row.RebuildMissed
		return false, r.enter(ctx, Comparing)
	case ok:
		return false, errors.New("the sink's health row is not as this rebuild has left it: resume it")
	}
	return false, fmt.Errorf("seal the new index: %w", err)
}

// swap switches the name. If the outcome is unknown, it checks until the switch can no longer
// happen.
func (r *run) swap(ctx context.Context) error {
	err := r.call(ctx, switchTime, func(ctx context.Context) error {
		if err := r.maySwitch(ctx); err != nil { // inside the call, so that its time limit includes this
			return err
		}
		return r.Sink.Switch(ctx, r.p.Collection, r.p.Old, r.p.New)
	})
	if err == nil {
		return r.end(ctx)
	}
	if ctx.Err() != nil {
		return err
	}
	if busy := r.save(ctx); busy != nil { // another program drives the rebuild, and may break the seal
		return errors.Join(err, busy)
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

// maySwitch returns an error if another program may have broken the seal, or may do so before a
// call that begins now has ended.
func (r *run) maySwitch(ctx context.Context) error {
	row, err := r.health(ctx)
	if err != nil {
		return err
	}
	if row.RebuildAt != r.p.At || row.RebuildSeal != r.sealed {
		return fmt.Errorf("%w: it broke the seal", ErrBusy)
	}
	// Compare the time of day: a timer does not run while the machine sleeps.
	if late := shard.MicrosOf(r.Clock.Now()).Sub(r.sealed); late > sealMargin {
		return fmt.Errorf("the name is not switched %s after SEAL: resume", late)
	}
	return nil
}

// end makes turns write only to the name again.
func (r *run) end(ctx context.Context) error {
	if err := r.forgotten(ctx); err != nil {
		return err
	}
	r.since = r.Clock.Now()
	r.audit("switched: %s stands for %s, no longer for %s", r.p.Name, r.p.New, r.p.Old)
	return r.enter(ctx, Tidying)
}

// forgotten removes the rebuild from the health row.
func (r *run) forgotten(ctx context.Context) error {
	_, err := r.table().Ensure(ctx, shard.Rebuilt(r.SinkName, r.p.At),
		func(row shard.Row) bool { return row.RebuildAt != r.p.At })
	if err != nil {
		return fmt.Errorf("take the rebuild out of the sink's health row: %w", err)
	}
	return nil
}
