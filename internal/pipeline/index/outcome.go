package index

import (
	"cmp"
	"context"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/sink"
)

// carryOut carries out the row of the design's table for each outcome of a request.
func (c *closer) carryOut(ctx context.Context, r *request) {
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
