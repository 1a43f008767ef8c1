package rebuild

import (
	"context"
	"fmt"

	"github.com/lullhq/lull/internal/shard"
)

// abort ends the rebuild and removes everything that it made.
func (r *run) abort(ctx context.Context, row shard.Row) error {
	known := row.RebuildAt == r.p.At && r.p.At != 0
	look := r.named // it was killed after the health row dropped it, perhaps after the switch
	if known {
		look = r.unsealed
	}
	switched, err := look(ctx)
	switch {
	case switched, r.p.Phase == Tidying:
		return fmt.Errorf("%w: resume it, to tidy up", ErrSwitched)
	case err != nil:
		return err
	}
	if known {
		if err := r.Sink.StopFill(ctx, r.p.New); err != nil {
			return err
		}
		if err := r.forgotten(ctx); err != nil {
			return err
		}
		// If a turn still writes to a deleted index, its documents wait until their leases end.
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
