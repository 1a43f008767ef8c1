package sim

import (
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// This file has what a drop of an operator gives up, so that the oracle excuses that and no more.

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

// onlyDropped reports whether a flight has no event that is not done, apart from those whose dead
// letters an operator dropped. A row has one dead version: prune knows nothing of the others.
func (o *oracle) onlyDropped(id flight.ID) bool {
	m, err := o.w.flights.Flights.Get(background, id)
	if err != nil {
		return false
	}
	dropped := 0
	for _, e := range m.Entries() {
		switch row := o.w.table.row(e.Doc); {
		case row.Committed >= e.Key, row.Dead == e.Key, row.Took(e.Key), o.isDead(e.Doc, e.Key):
		case o.given(e.Doc, e.Key):
			dropped++
		default:
			return false
		}
	}
	return dropped > 0
}
