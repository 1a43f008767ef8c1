package rebuild

import (
	"context"
	"errors"
	"fmt"

	"github.com/lullhq/lull/internal/shard"
)

// unsealed reports whether a program that was killed or stopped has switched the name. If it has
// not, and no longer can, the look is over.
func (r *run) unsealed(ctx context.Context) (switched, over bool, err error) {
	row, err := r.health(ctx)
	if err != nil {
		return false, false, err
	}
	known := row.RebuildAt == r.p.At && r.p.At != 0
	if known && row.RebuildSeal == 0 {
		// The other program may be about to SEAL. It counted the missed writes before, so one more
		// makes SEAL refuse it.
		_, err := r.table().Write(ctx, shard.Miss(r.SinkName, r.p.At))
		if _, refused := shard.AsRefused(err); refused {
			return false, false, nil // it has changed the row: look again
		}
		if err != nil {
			return false, false, fmt.Errorf("refuse the seal of an earlier program: %w", err)
		}
	}
	if switched, err = r.named(ctx); switched || err != nil || !known || row.RebuildSeal == 0 {
		return switched, true, err
	}
	// Count from when this program has seen the seal, by its own clock: the program that set it may
	// have had another clock.
	if r.p.Seal != row.RebuildSeal {
		r.p.Seal, r.p.Waited = row.RebuildSeal, min(r.p.Waited, 0)
	}
	if late, err := r.wait(ctx, sealLife); !late {
		return false, false, err
	}
	_, err = r.table().Ensure(ctx, shard.Unseal(r.SinkName, r.p.At, row.RebuildSeal),
		func(row shard.Row) bool { return row.RebuildSeal == 0 })
	if err != nil {
		return false, false, fmt.Errorf("take the seal away: %w", err)
	}
	return false, false, nil
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

// swap seals the new index, so that no write may be missed from now on, and switches the name. If
// the outcome of an earlier switch is unknown, it looks until the switch can no longer happen.
func (r *run) swap(ctx context.Context) error {
	if r.p.Stage == looking {
		switched, over, err := r.unsealed(ctx)
		switch {
		case err != nil || !over:
			return err
		case switched:
			return r.end(ctx)
		}
		if r.enter(Comparing, waiting); r.p.Failed != "" {
			r.halt(errors.New(r.p.Failed))
			r.p.Failed = ""
		}
		return nil
	}
	now := shard.MicrosOf(r.Clock.Now())
	_, err := r.table().Write(ctx, shard.Seal(r.SinkName, r.p.At, r.p.Seen, now))
	refused, ok := shard.AsRefused(err)
	switch {
	case err == nil, ok && refused.Row.RebuildAt == r.p.At && refused.Row.RebuildSeal == now:
	case ok && refused.Row.RebuildAt == r.p.At && refused.Row.RebuildSeal == 0: // a write was missed meanwhile
		r.p.Missed = refused.Row.RebuildMissed
		r.enter(Comparing, counting)
		return nil
	case ok:
		return errors.New("the sink's health row is not as this rebuild has left it")
	default:
		return fmt.Errorf("seal the new index: %w", err)
	}
	err = r.call(ctx, switchTime, func(ctx context.Context) error {
		if err := r.maySwitch(ctx, now); err != nil { // inside the call, so that its time limit includes this
			return err
		}
		return r.Sink.Switch(ctx, r.p.Collection, r.p.Old, r.p.New)
	})
	switch {
	case err == nil:
		return r.end(ctx)
	case ctx.Err() != nil:
		return err
	}
	r.p.Stage, r.p.Waited, r.p.Failed = looking, 0, err.Error()
	return nil
}

// maySwitch returns an error if another program may have broken the seal, or may do so before a
// call that begins now has ended.
func (r *run) maySwitch(ctx context.Context, sealed shard.Micros) error {
	row, err := r.health(ctx)
	if err != nil {
		return err
	}
	if row.RebuildAt != r.p.At || row.RebuildSeal != sealed {
		return fmt.Errorf("%w: it broke the seal", ErrBusy)
	}
	// Compare the time of day: a timer does not run while the machine sleeps.
	if late := shard.MicrosOf(r.Clock.Now()).Sub(sealed); late > sealMargin {
		return fmt.Errorf("the name is not switched %s after SEAL: resume", late)
	}
	return nil
}

// end makes turns write only to the name again.
func (r *run) end(ctx context.Context) error {
	if err := r.forgotten(ctx); err != nil {
		return err
	}
	r.audit("switched: %s stands for %s, no longer for %s", r.p.Name, r.p.New, r.p.Old)
	r.p.Waited, r.p.Failed = 0, ""
	r.enter(Tidying, "")
	return nil
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
