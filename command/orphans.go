package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
)

// hashOf stands for a document in memory: eight bytes, so that ten million take little. Of two
// documents of one hash an orphan would be overlooked, never the other way round.
func hashOf(doc shard.DocID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(doc)) // a hash takes everything
	return h.Sum64()
}

// seen keeps what the sink holds, and held before the export was made, and the export does not
// have.
func (v *verification) seen(page []operate.ReconcileCopy) {
	before := shard.MicrosOf(v.completeAt.Add(-clock.Trust))
	for _, c := range page {
		if _, has := v.exported[hashOf(c.Key)]; !has && shard.Micros(c.Fence) < before {
			v.orphans = append(v.orphans, c)
		}
	}
}

// removeBatch is how many orphans are removed with one question.
const removeBatch = 100

// removeOrphans names the orphans, and removes them for a repair.
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

// remove asks for the removal of what is left of the orphans. Those in motion stay for another
// time.
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
			case r.Outcome == "changed": // whoever writes it decides
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
