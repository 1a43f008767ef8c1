// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// carryOut ends the claims of a request. Each outcome of the sink is a row in the table of design
// section 8.
func carryOut(ctx context.Context, c *closer, r *request) {
	c.finishAll(len(r.docs), func(i int) func() {
		if r.outcomes == nil {
			return c.release(ctx, r.docs[i], "the request was not sent: maxDocumentsPerSecond", 0, false)
		}
		return c.endByOutcome(ctx, r.docs[i], r.outcomes[i])
	})
	c.finishAll(len(r.broken), func(i int) func() { return c.endBroken(ctx, r.broken[i]) })
}

// endByOutcome ends one claim by the outcome of its write (the table in design section 8). It does
// the I/O and returns a function that updates the flight's state.
func (c *closer) endByOutcome(ctx context.Context, d *document, o sink.Outcome) func() {
	e, why := d.newest(), o.Kind.String()+": "+o.Reason
	switch o.Kind {
	case sink.Applied:
		return c.commit(ctx, d, e, true)
	case sink.Throttled, sink.Configuration:
		return c.release(ctx, d, why, o.RetryAfter, false)
	case sink.Refused:
		if c.lastRefusal(d) {
			return c.reject(ctx, d, deadletter.Refusals, o.Reason)
		}
		return c.release(ctx, d, why, o.RetryAfter, true)
	case sink.Rejected:
		return c.reject(ctx, d, deadletter.RejectedBySink, o.Reason)
	default: // Unknown, or Newer under a live lease: the lease stays until it expires, and claimed stays
		return func() {
			if o.Kind == sink.Newer && c.now() <= d.row.LeaseUntil {
				c.note(c.about(d, e, journal.SinkNewer, o.Reason))
			}
			c.note(c.about(d, e, journal.OutcomeUnknown, why))
			c.wait(d, d.row.LeaseUntil+1, "the write's outcome is unknown")
		}
	}
}

// endBroken ends the claim of a document that cannot be built. lull made no request for the
// document.
func (c *closer) endBroken(ctx context.Context, d *document) func() {
	if d.faultFor == deadletter.Panic && !c.lastRefusal(d) {
		return c.release(ctx, d, d.fault, 0, true)
	}
	return c.reject(ctx, d, d.faultFor, d.fault)
}

// noteConfiguration writes one note, and so raises one alarm, for all ops of a request that failed
// because of the engine's configuration. The note has the first reason.
func (v *invocation) noteConfiguration(outcomes []sink.Outcome) {
	n := journal.Note{Step: journal.SinkConfiguration}
	for _, o := range outcomes {
		if o.Kind == sink.Configuration {
			n.Detail = cmp.Or(n.Detail, o.Reason)
			n.Count++
		}
	}
	if n.Count > 0 {
		v.note(n)
	}
}

// closer ends claims: each claim is committed, released or rejected.
type closer struct {
	*holding
	dead queue.Queue
	sink *health
}

// errChanging says that the row changed before every try.
var errChanging = errors.New("the row keeps changing")

// endLease does a write that ends a lease, in the form that the newest image of the row asks for.
// It returns the row before and after the write. If the lease belongs to another flight by now,
// endLease returns the refusal with the row of that flight.
func (c *closer) endLease(ctx context.Context, l shard.Lease, image shard.Row,
	form func(image shard.Row) shard.Write,
) (a answer) {
	// Usually one call is enough. Another call follows only if the row in a refusal asks for
	// another form.
	for range 3 {
		w := form(image)
		switch a = c.ask(ctx, w); {
		case !a.refused:
			return a
		case shard.Ended(a.row, l, w): // the write was applied, and only its answer was lost
			return answer{old: image, row: a.row}
		case a.row.Owner != l.Token:
			return a
		}
		image = a.row // the lease is ours, but the write had the wrong form
	}
	return answer{row: image, err: errChanging}
}

// commit does COMMIT of a version that was written, or that needed no write. A refused COMMIT never
// counts as success.
func (c *closer) commit(ctx context.Context, d *document, e *heldEntry, written bool) func() {
	a := c.endLease(ctx, d.lease, d.row, func(image shard.Row) shard.Write {
		return shard.Commit(d.lease, e.Op, c.now(), c.config.Lifecycle.Expires(c.clock.Now()), image)
	})
	return func() {
		switch {
		// another flight has the lease: endLease has already recognised a lost answer of our own
		// COMMIT
		case a.refused:
			c.note(c.about(d, e, journal.LeaseLost, "COMMIT refused: another flight has the lease"))
			d.row = a.row
			c.wait(d, c.now(), "the lease was lost")
		case a.err != nil:
			c.waitAfterUnended(d, a.err, "COMMIT")
		default:
			if d.row = a.row; !written {
				c.dropUnwritten(d, e, *d.before)
				return
			}
			n := c.about(d, e, journal.Committed, "")
			n.Old = a.old
			c.drop(e)
			c.note(n)
			c.completeUpTo(d, e.Key)
		}
	}
}

// waitAfterUnended keeps a document whose lease could not be ended. If the answer was lost, the
// document waits until the lease has expired, so that this invocation never claims the document
// again.
func (c *closer) waitAfterUnended(d *document, err error, write string) {
	if errors.Is(err, errChanging) {
		c.wait(d, c.now(), err.Error())
		return
	}
	c.wait(d, d.row.LeaseUntil+1, write+" got no answer")
}

// release does RELEASE, because the sink applied no request of this claim. The row keeps `claimed`
// (design section 5).
func (c *closer) release(ctx context.Context, d *document, why string, after time.Duration, refused bool) func() {
	a := c.endLease(ctx, d.lease, d.row, func(shard.Row) shard.Write { return shard.Release(d.lease, why, refused) })
	return func() {
		if a.err != nil {
			c.waitAfterUnended(d, a.err, "RELEASE")
			return
		}
		c.note(c.about(d, d.newest(), journal.Released, why))
		// After a throttle the back-off grows with the number of the flight's turns. After a
		// refusal the back-off grows with the number of the document's refusals.
		n := c.state.Turn
		if refused {
			n = int(d.row.Refusals)
		}
		c.wait(d, max(c.now().Add(max(c.delay(n), after)), c.sink.next), "back-off: "+why)
	}
}
