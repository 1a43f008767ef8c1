// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// This file has the oracle's checks of operators' actions: raised rows, resets and pauses.

// raised checks that a row is raised only to the version in the sink.
func (o *oracle) raised(l *ledger, row shard.Row) {
	// A late request may have written a newer version in the meantime. The next comparison finds
	// it.
	if l.inSink < row.Committed || l.inSinkOp != shard.Put {
		o.always("a row is raised to the sink's version", fmt.Sprintf("%s: to %s, the sink holds %s (%s)", row.Doc,
			row.Committed, l.inSink, l.inSinkOp))
	}
	l.committed = max(l.committed, row.Committed)
}

// resets removes a version from the oracle's records after an operator has withdrawn the version.
// At the time of the reset, no invocation may hold a claim of the document.
func (o *oracle) resets(l *ledger, old, row shard.Row) {
	for _, g := range l.grants {
		if g.alive() && !o.w.beyondGuard {
			o.violate("no reset while a claim is held", fmt.Sprintf("%s: while %s %d holds a claim of %s", row.Doc, g.v.Name, g.v.ID,
				g.key))
		}
	}
	l.forgot, l.committed, l.resetAt = old.Committed, row.Committed, o.w.now
	l.took = append(l.took, old.Committed)
}

// tookBack reports whether an operator withdrew the event with this key, in any resync run.
func (l *ledger) tookBack(k shard.OrderKey) bool { return slices.Contains(l.took, k.Event()) }

// doneBeforeReset reports whether an event was done because of a withdrawn version. The event has
// that version, or an older one that an invocation judged just before the reset.
func (o *oracle) doneBeforeReset(e *event) bool {
	l := o.ledger(e.doc)
	return l.forgot != "" && (l.tookBack(e.key) || e.key < l.forgot && o.w.now-l.resetAt < time.Minute)
}

// halted follows every write of a health row, and notes since when the row shows a pause.
func (o *oracle) halted(row shard.Row) {
	if row.PausedAt == 0 {
		delete(o.pauses, row.Doc)
	} else if _, was := o.pauses[row.Doc]; !was {
		o.pauses[row.Doc] = o.w.now
	}
}

// claimed checks that no invocation claims documents for a paused sink if the invocation started
// after the pause. An eventually consistent read may still show the row from before the pause.
func (o *oracle) claimed(v *invocation, doc shard.DocID) {
	row := shard.HealthRow(o.w.pipeOf(doc).name)
	if since, paused := o.pauses[row]; paused && v.began > since+o.w.drawn.StaleBy {
		o.violate("nothing is claimed for a paused sink",
			fmt.Sprintf("%s: by %s %d, which began %s after the pause", doc, v.Name, v.ID, v.began-since))
	}
}
