// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"errors"
	"fmt"

	"github.com/lullhq/lull/internal/shard"
)

// findSwitch finds out whether an earlier program, which was killed or stopped, has switched the
// name. over says that the answer is final, because that program can no longer switch the name.
// Otherwise the caller must ask again.
func (r *run) findSwitch(ctx context.Context) (switched, over bool, err error) {
	row, err := r.health(ctx)
	if err != nil {
		return false, false, err
	}
	known := row.RebuildAt == r.p.At && r.p.At != 0
	if known && row.RebuildSeal == 0 {
		// The earlier program may be about to set its seal. It has read the number of missed writes, so a
		// further MISS makes its SEAL fail.
		_, err := r.table().Write(ctx, shard.Miss(r.SinkName, r.p.At))
		if _, refused := shard.AsRefused(err); refused {
			return false, false, nil // that program has changed the row: look again
		}
		if err != nil {
			return false, false, fmt.Errorf("prevent the seal of an earlier program: %w", err)
		}
	}
	if switched, err = r.isSwitched(ctx); switched || err != nil || !known || row.RebuildSeal == 0 {
		return switched, true, err
	}
	// Count the time since this program first saw the seal, by its own clock. The program that set the
	// seal may have a clock that differs.
	if r.p.Seal != row.RebuildSeal {
		r.p.Seal, r.p.Waited = row.RebuildSeal, min(r.p.Waited, 0)
	}
	if late, err := r.wait(ctx, sealLife); !late {
		return false, false, err
	}
	_, err = r.table().Ensure(ctx, shard.Unseal(r.SinkName, r.p.At, row.RebuildSeal),
		func(row shard.Row) bool { return row.RebuildSeal == 0 })
	if err != nil {
		return false, false, fmt.Errorf("remove the seal of an earlier program: %w", err)
	}
	return false, false, nil
}

// isSwitched reports whether the name points to the new index.
func (r *run) isSwitched(ctx context.Context) (yes bool, err error) {
	err = r.call(ctx, callTime, func(ctx context.Context) error {
		at, err := r.Sink.Standing(ctx, r.p.Collection)
		yes = err == nil && at.Index == r.p.New
		return err
	})
	return yes, err
}

// swap sets the seal, so that from now on the new index may miss no write, and switches the name.
// If the outcome of an earlier switch is unknown, swap first waits until that switch can no longer
// happen.
func (r *run) swap(ctx context.Context) error {
	if r.p.Stage == looking {
		switched, over, err := r.findSwitch(ctx)
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
	case ok && refused.Row.RebuildAt == r.p.At && refused.Row.RebuildSeal == 0:
		// a write was missed since the comparison
		r.p.Missed = refused.Row.RebuildMissed
		r.enter(Comparing, counting)
		return nil
	case ok:
		return errors.New("the sink's health row was changed during the switch: resume the rebuild")
	default:
		return fmt.Errorf("seal the new index: %w", err)
	}
	err = r.call(ctx, switchTime, func(ctx context.Context) error {
		if err := r.maySwitch(ctx, now); err != nil { // here, so that the time limit of the call includes this check
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

// maySwitch returns an error if another program may have removed the seal, or may remove the seal
// before a call that begins now has ended.
func (r *run) maySwitch(ctx context.Context, sealed shard.Micros) error {
	row, err := r.health(ctx)
	if err != nil {
		return err
	}
	if row.RebuildAt != r.p.At || row.RebuildSeal != sealed {
		return fmt.Errorf("%w: it has removed the seal of this program", ErrBusy)
	}
	// Compare the time of day: a timer does not run while the machine sleeps.
	if late := shard.MicrosOf(r.Clock.Now()).Sub(sealed); late > sealMargin {
		return fmt.Errorf("the name was not switched, because the seal is already %s old: resume the rebuild", late)
	}
	return nil
}

// end removes the rebuild from the health row after the switch, so that turns write to one index
// again.
func (r *run) end(ctx context.Context) error {
	if err := r.forgetRebuild(ctx); err != nil {
		return err
	}
	r.audit("switched: %s points to %s, and no longer to %s", r.p.Name, r.p.New, r.p.Old)
	r.p.Waited, r.p.Failed = 0, ""
	r.enter(Tidying, "")
	return nil
}

// forgetRebuild removes the rebuild from the health row.
func (r *run) forgetRebuild(ctx context.Context) error {
	_, err := r.table().Ensure(ctx, shard.Rebuilt(r.SinkName, r.p.At),
		func(row shard.Row) bool { return row.RebuildAt != r.p.At })
	if err != nil {
		return fmt.Errorf("remove the rebuild from the sink's health row: %w", err)
	}
	return nil
}
