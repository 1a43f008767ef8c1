package command

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
)

// hashOf identifies a document by eight bytes, so that ten million need little memory. If two
// documents have the same hash, an orphan may be missed. But no document is removed by mistake.
func hashOf(doc shard.DocID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(doc)) // a hash takes everything
	return h.Sum64()
}

// seen collects the documents that were in the sink before the export was made and that the export
// lacks.
func (v *verification) seen(page []operate.ReconcileCopy) {
	before := shard.MicrosOf(v.completeAt.Add(-clock.Trust))
	for _, c := range page {
		if _, has := v.exported[hashOf(c.Key)]; !has && shard.Micros(c.Fence) < before {
			v.orphans = append(v.orphans, c)
		}
	}
}

// removeBatch is how many orphans are removed with one request.
const removeBatch = 100

// removeOrphans prints the orphans, and removes them in a repair.
func (v *verification) removeOrphans(ctx context.Context) error {
	if len(v.orphans) == 0 {
		return nil
	}
	if n := v.cp.Total.Export["invalid"]; n > 0 {
		return &exitError{exitFailed, fmt.Errorf("%d events of the export cannot be read, and may be of the %d documents "+
			"that only the sink has: nothing of those was removed", n, len(v.orphans))}
	}
	if v.repair {
		err := v.may.ask(ctx, v.app, fmt.Sprintf("Remove %d of %d documents from the sink, which the export does not have?",
			len(v.orphans), v.cp.Total.Documents))
		if err != nil {
			return err
		}
	}
	return v.remove(ctx)
}

// remove removes the remaining orphans. It keeps the orphans in motion for the next try.
func (v *verification) remove(ctx context.Context) error {
	var moving []operate.ReconcileCopy
	for batch := range slices.Chunk(v.orphans, removeBatch) {
		if v.repair {
			if err := v.repairs.WaitN(ctx, len(batch)); err != nil {
				return err
			}
		}
		done, err := v.api.Remove(ctx, operate.RemoveOrder{
			Collection: v.collection, Documents: batch, Run: v.cp.Run, DryRun: !v.repair, By: whoami(),
			Sink: v.sink,
		})
		for i, r := range done.Documents {
			switch {
			case r.Outcome == "changed": // something else writes this document, so leave it
			case r.Outcome == inMotion:
				moving = append(moving, batch[i])
			case v.repair:
				v.tell(drifted{Key: r.Key, Difference: "orphan", Outcome: r.Outcome, Error: r.Error})
			default:
				v.tell(drifted{Key: r.Key, Difference: "orphan", Outcome: found})
			}
		}
		if err != nil {
			return err
		}
	}
	v.orphans = moving
	return nil
}
