package index

import (
	"context"
	"errors"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// closer ends claims: it commits, releases or rejects what was claimed.
type closer struct {
	*holding
	dead queue.Queue
	sink *health
}

// errChanging says that the row changed before every try.
var errChanging = errors.New("the row keeps changing")

// endLease does a write that ends a lease, in the form that the newest image of the row asks
// for. It returns the row before and after. If the lease belongs to another flight by now, it
// returns the refusal with that row.
func (c *closer) endLease(ctx context.Context, l shard.Lease, image shard.Row,
	form func(image shard.Row) shard.Write,
) (a answer) {
	// Usually one call. Another follows only if the row in a refusal asks for another form.
	for range 3 {
		w := form(image)
		switch a = c.ask(ctx, w); {
		case !a.refused:
			return a
		case shard.Ended(a.row, l, w): // only its answer was lost
			return answer{old: image, row: a.row}
		case a.row.Owner != l.Token:
			return a
		}
		image = a.row // only the form was wrong
	}
	return answer{row: image, err: errChanging}
}

// commit is COMMIT of a version that was written, or that needed no write. A refused COMMIT
// never counts as success.
func (c *closer) commit(ctx context.Context, d *document, e *held, written bool) func() {
	a := c.endLease(ctx, d.lease, d.row, func(image shard.Row) shard.Write {
		return shard.Commit(d.lease, e.Op, c.now(), c.config.Expires(c.clock.Now()), image)
	})
	return func() {
		switch {
		case a.refused: // not our own lost answer, which endLease recognises: another flight has the lease
			c.note(c.about(d, e, journal.LeaseLost, "COMMIT refused: the lease is somebody else's"))
			d.row = a.row
			c.wait(d, c.now(), "the lease was lost")
		case a.err != nil:
			c.unended(d, a.err, "COMMIT")
		default:
			if d.row = a.row; !written {
				c.unwritten(d, e, d.before)
				return
			}
			n := c.about(d, e, journal.Committed, "")
			n.Old = a.old
			c.drop(e)
			c.note(n)
			c.doneUpTo(d, e.Key)
		}
	}
}

// unended keeps a document whose lease could not be ended. If the answer was lost, it waits
// until the lease has expired, so that this invocation never claims it again.
func (c *closer) unended(d *document, err error, write string) {
	if errors.Is(err, errChanging) {
		c.wait(d, c.now(), err.Error())
		return
	}
	c.wait(d, d.row.LeaseUntil+1, write+" got no answer")
}

// release is RELEASE: no request of this claim was applied. The row keeps `claimed` (design
// section 5).
func (c *closer) release(ctx context.Context, d *document, why string, after time.Duration, refused bool) func() {
	a := c.endLease(ctx, d.lease, d.row, func(shard.Row) shard.Write { return shard.Release(d.lease, why, refused) })
	return func() {
		if a.err != nil {
			c.unended(d, a.err, "RELEASE")
			return
		}
		c.note(c.about(d, d.newest(), journal.Released, why))
		// After a throttle the back-off grows with the flight's turns, after a refusal with the
		// document's refusals.
		n := c.state.Turn
		if refused {
			n = int(d.row.Refusals)
		}
		c.wait(d, max(c.now().Add(max(c.delay(n), after)), c.sink.next), "back-off: "+why)
	}
}
