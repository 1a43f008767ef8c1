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

// carryOut carries out the row of the design's table for each outcome of a request.
func carryOut(ctx context.Context, c *closer, r *request) {
	c.finishAll(len(r.docs), func(i int) func() {
		if r.outcomes == nil {
			return c.release(ctx, r.docs[i], "never sent: maxDocumentsPerSecond", 0, false)
		}
		return c.outcome(ctx, r.docs[i], r.outcomes[i])
	})
	c.finishAll(len(r.broken), func(i int) func() { return c.broken(ctx, r.broken[i]) })
}

// outcome carries out one row of the table in design section 8. It does the I/O and returns a
// function that updates the flight's state.
func (c *closer) outcome(ctx context.Context, d *document, o sink.Outcome) func() {
	e, why := d.newest(), o.Kind.String()+": "+o.Reason
	switch o.Kind {
	case sink.Applied:
		return c.commit(ctx, d, e, true)
	case sink.Throttled, sink.Configuration:
		return c.release(ctx, d, why, o.RetryAfter, false)
	case sink.Refused:
		if c.lastRefusal(d) {
			return c.rejecting(ctx, d, deadletter.Refusals, o.Reason)
		}
		return c.release(ctx, d, why, o.RetryAfter, true)
	case sink.Rejected:
		return c.rejecting(ctx, d, deadletter.RejectedBySink, o.Reason)
	default: // Unknown, and Newer under a live lease: the lease stays until it expires, and claimed stays
		return func() {
			if o.Kind == sink.Newer && c.now() <= d.row.LeaseUntil {
				c.note(c.about(d, e, journal.SinkNewer, o.Reason))
			}
			c.note(c.about(d, e, journal.OutcomeUnknown, why))
			c.wait(d, d.row.LeaseUntil+1, "the write's outcome is unknown")
		}
	}
}

// broken ends the claim of a document that cannot be built. No request was made for it.
func (c *closer) broken(ctx context.Context, d *document) func() {
	if d.faultFor == deadletter.Panic && !c.lastRefusal(d) {
		return c.release(ctx, d, d.fault, 0, true)
	}
	return c.rejecting(ctx, d, d.faultFor, d.fault)
}

// noteConfiguration raises one alarm for all ops of a request that failed because of the
// engine's configuration. It gives the first reason.
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
				c.unwritten(d, e, *d.before)
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
