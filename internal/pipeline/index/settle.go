// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// read reads the rows of the documents into the documents.
func (h *holding) read(ctx context.Context, docs []*document, c shard.Consistency) error {
	ids := make([]shard.DocID, len(docs))
	for i, d := range docs {
		ids[i] = d.id
	}
	rows, err := h.rows().Read(ctx, ids, c)
	if h.noteFailed("read rows", "", err) {
		return err
	}
	for i, d := range docs {
		d.row = rows[i]
	}
	return nil
}

// decideDocument decides about the newest version. If that version needs nothing more, it decides
// about the next older version. It stops at a version that must be claimed or admitted, or that
// waits, or when no version remains.
func (h *holding) decideDocument(d *document, consistent bool) shard.Act {
	for e := d.newest(); e != nil; e = d.newest() {
		timing := h.config.Timing(d.id.Collection())
		now := h.now()
		turns := 0
		if timing.Quiet > 0 {
			// each wait takes quiet; an older version may be due later
			turns = max(int(now.Sub(e.Due)/timing.Quiet), 0)
		}
		d.step = shard.Decide(d.row, shard.Hold{Key: e.Key, Admitted: e.Admitted}, shard.View{
			Now: now, Consistent: consistent, Turn: turns, Backoff: now.Add(h.delay(turns)),
		}, timing)
		switch d.step.Act {
		case shard.ActDone:
			// The row has committed >= k, so the older versions in the flight are done too.
			h.completeUpTo(d, d.row.Committed)
		case shard.ActStored:
			// The dead letter of this version decides nothing about older versions. The loop
			// continues with the older versions.
			h.completeStored(d, e.Key)
		case shard.ActLeave:
			if d.row.Foreign() {
				h.note(h.about(d, e, journal.Schema, "row"))
			}
			// The message leaves the flight undeleted and visible at once (ADR 0005).
			h.giveUp(d, e, d.step.Why)
		case shard.ActWait:
			h.wait(d, d.step.Until, d.step.Why)
			return shard.ActWait
		default:
			return d.step.Act
		}
	}
	return shard.ActDone
}

// decideAfterRefusal decides again about a document, by the row that refused a write of its newest
// version. That row is as good as a consistent read. decideAfterRefusal reports whether the version
// is worth another try.
func (h *holding) decideAfterRefusal(d *document, row shard.Row) (again bool) {
	e := d.newest()
	d.row = row
	switch act := h.decideDocument(d, true); {
	case act == shard.ActClaim && d.newest() == e:
		return true
	case act == shard.ActClaim, act == shard.ActAdmit:
		h.waitForOlder(d)
	}
	return false
}
