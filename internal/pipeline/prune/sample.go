// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"fmt"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// sample picks a few rows of this sink at random. It starts an execution in which index compares
// these rows with the sink, because only index can reach the sink. A lost sample does not matter:
// the next run takes another sample.
func (r *run) sample(ctx context.Context) error {
	n := r.Config.Lifecycle.DriftSample
	if n == 0 || r.Launcher == nil || shard.Unavailable(r.health) {
		return nil
	}
	docs, err := r.table().Sample(ctx, r.Scanner, string(r.token), n, 1, func(row shard.Row) bool {
		return row.Committed != "" && r.mine("", row.Doc) && r.Config.Ours(row.Doc)
	})
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if len(docs) == 0 {
		return nil
	}
	now := shard.MicrosOf(r.Clock.Now())
	s := flight.State{
		Schema: flight.SchemaVersion, Flight: r.NewID(r.Clock.Now()), WakeAt: flight.WakeText(now.Time()),
		VisibleUntil: now,
		Sample:       docs, Kind: r.Config.Flight.KindFor(0),
	}
	if err := r.try(ctx, func() error { return r.Launcher.Start(ctx, s) }); err != nil {
		return fmt.Errorf("start the comparison: %w", err)
	}
	r.note(journal.Note{Step: journal.Sampled, Flight: string(s.Flight), Count: len(docs)})
	return nil
}
