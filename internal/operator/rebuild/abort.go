// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"fmt"
)

// abort does a step of the abort, which ends the rebuild and deletes everything that the rebuild
// made.
func (r *run) abort(ctx context.Context) error {
	if r.p.Stage == aborted {
		// If a turn still writes to a deleted index, its documents wait until their leases end.
		if over, err := r.outlast(ctx); !over {
			return err
		}
		if err := r.Sink.Drop(ctx, r.p.New); err != nil {
			return err
		}
		r.p.Phase = Aborted
		r.audit("aborted: %s is deleted", r.p.New)
		return nil
	}
	if r.p.Waited < 0 { // the last step of an earlier program may be under way
		_, err := r.wait(ctx, 0)
		return err
	}
	switched, over, err := r.findSwitch(ctx)
	switch {
	case err != nil:
		return err
	case switched, r.p.Phase == Tidying:
		if r.p.Phase != Tidying {
			r.p.Phase = Switching
		}
		r.p.Stage = ""
		r.halt(fmt.Errorf("%w: resume the rebuild, to delete the indices that are no longer needed", ErrSwitched))
		return nil
	case !over:
		return nil
	}
	if r.p.At != 0 {
		if err := r.Sink.StopFill(ctx, r.p.New); err != nil {
			return err
		}
		if err := r.forgetRebuild(ctx); err != nil {
			return err
		}
	}
	r.p.Stage, r.p.Waited = aborted, 0
	return nil
}
