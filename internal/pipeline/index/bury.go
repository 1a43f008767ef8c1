package index

import (
	"context"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// panicAttempts is how many unanswered claims a document needs before a panic of the sink's
// client counts as its fault. From the fourth on, the document is alone in its request.
const panicAttempts = 6

// bury ends versions on which the sink's client panicked again and again while they were alone
// in their request: first the dead letter, then PARK (ADR 0021). PARK needs an expired lease. It
// leaves `claimed` unchanged: the version may be in the sink, so nothing older is written. bury
// returns the other claims.
func (c *closer) bury(ctx context.Context, claims []*document) []*document {
	dead, others := split(claims, func(d *document) bool {
		e := d.newest()
		return c.state.Panicked.Has(e.item) && d.row.Claimed == e.Key && d.row.Attempts >= panicAttempts
	})
	c.finishAll(len(dead), func(i int) func() { return c.buryOne(ctx, dead[i]) })
	return others
}

func (c *closer) buryOne(ctx context.Context, d *document) func() {
	e := d.newest()
	const detail = "the sink's client panics on this document"
	id, err := c.sendLetter(ctx, d, e, deadletter.Panic, detail)
	if c.lost("send the dead letter", d.id, err) {
		return func() { c.wait(d, c.now().Add(c.delay(c.state.Turn)), "its dead letter was not sent") }
	}
	mark, row, err := c.rows().Park(ctx, d.id, e.Key, c.config.Expires(c.clock.Now()), d.row,
		func(tr shard.Transition) { c.note(c.about(d, e, journal.RowRefused, tr.String())) })
	c.lost("PARK", d.id, err)
	return func() {
		if !mark.Done() {
			c.wait(d, c.now().Add(c.delay(c.state.Turn)), "its row is not parked")
			return
		}
		d.row = row
		c.buried(d, e, id, string(deadletter.Panic)+": "+detail)
	}
}
