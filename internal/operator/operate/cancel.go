// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/shard"
)

// Cancellation says what to cancel.
type Cancellation struct {
	Key       shard.DocID `json:"key"`
	Scheduled bool        `json:"scheduled,omitempty"` // the next scheduled event, not the pending version
	By        string      `json:"by"`                  // the operator, for the audit
}

// canceller cancels pending versions and scheduled events.
type canceller struct {
	layout
	parked
	plans
}

// Cancel makes the pending version of a document a dead letter, or its next scheduled event.
func (o *canceller) Cancel(ctx context.Context, c Cancellation) (Letter, error) {
	if err := named(c.By); err != nil {
		return Letter{}, err
	}
	// If a sink has written the version already, the version can still be cancelled in the others.
	done, err := eachRow(o.layout, c.Key, func(row shard.DocID) (deadletter.Facts, error) {
		f, err := o.cancel(ctx, row, c)
		return f, kind(err)
	})
	if err != nil {
		return Letter{}, err
	}
	return asLetter(done[0]), nil
}

// eachRow changes the rows of a key: one row if the key names a sink, otherwise one for each sink.
// If at least one row was changed, it is not an error if others have nothing to change.
func eachRow[A any](o layout, key shard.DocID, change func(shard.DocID) (A, error)) (done []A, err error) {
	rows, err := o.rows(key)
	if err != nil {
		return nil, err
	}
	var why error
	for _, row := range rows {
		a, err := change(row)
		switch {
		case err == nil:
			done = append(done, a)
		case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrInput):
			return nil, err
		default:
			why = cmp.Or(why, err)
		}
	}
	if len(done) == 0 {
		return nil, why
	}
	return done, nil
}

func (o *canceller) cancel(ctx context.Context, row shard.DocID, c Cancellation) (deadletter.Facts, error) {
	cancel := o.redrives.Cancel
	if c.Scheduled {
		cancel = o.redrives.CancelScheduled
	}
	f, err := cancel(ctx, row, c.By)
	if errors.Is(err, redrive.ErrNotPending) {
		if planned, _, look := o.scheduled(ctx, row); look == nil && len(planned) > 0 {
			err = fmt.Errorf("%w, but version %s is scheduled for %s: cancel that with --scheduled", err,
				planned[0].Version, planned[0].NotBefore.UTC().Format(time.RFC3339))
		}
	}
	return f, err
}
