// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// If an operator drops a dead letter, its version may be lost. The functions in this file recognize
// these losses, so that the oracle excuses them and no others.

// marks sees which dead version a row has, and had.
func (o *oracle) marks(old, row shard.Row) {
	if e := o.events[idOf(row.Doc, old.Dead)]; e != nil && old.Dead != "" && old.Dead != row.Dead {
		e.marked = o.w.now
	}
}

// givenUp reports whether a message may go because its dead letter was there, or because the row
// had it as dead. A copy that was sent after the dead letter was parked may not go for that alone.
func (o *oracle) givenUp(t truth) bool {
	row := o.w.table.row(t.doc)
	return t.given && (t.at <= t.stored || t.marked >= t.at || t.key != "" && row.Dead == t.key)
}

// given reports whether an operator dropped the dead letter of a version that was not committed.
func (o *oracle) given(doc shard.DocID, k shard.OrderKey) bool {
	e := o.events[idOf(doc, k)]
	return e != nil && e.given && !e.parked && e.dying == 0
}

// notLost reports whether prune calls a flight stuck although nothing of it is lost. There are two
// causes. An operator dropped the dead letter of an event: a row has one dead version, and prune
// knows nothing of the others. Or SQS takes no message for hours, so the message of an event stays
// in the dead-letter queue, where prune does not look.
func (o *oracle) notLost(id flight.ID) bool {
	m, err := o.w.flights.Flights.Get(background, id)
	if err != nil {
		return false
	}
	excused := 0
	for _, entry := range m.Entries() {
		e := o.events[idOf(entry.Doc, entry.Key)]
		switch row := o.w.table.row(entry.Doc); {
		case row.Committed >= entry.Key, row.Dead == entry.Key, row.Took(entry.Key):
		case e != nil && e.dying > 0 && o.w.away(fault.SQS):
			excused++
		case o.isDead(entry.Doc, entry.Key):
		case o.given(entry.Doc, entry.Key):
			excused++
		default:
			return false
		}
	}
	return excused > 0
}

// expired reports whether the last message of an event was past its retention.
func (o *oracle) expired(doc shard.DocID, k shard.OrderKey) bool {
	e := o.events[idOf(doc, k)]
	return e != nil && e.lost && e.waiting == 0 && e.dying == 0
}
