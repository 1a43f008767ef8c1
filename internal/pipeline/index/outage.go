package index

import (
	"context"
	"errors"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// outage is the turn of a flight that was started because the table was unreachable with
// `tableOutage: open`. While the table is unreachable, each document is written once, without a
// claim, and noted. Nothing is acknowledged. When the table is back, a delete that the row knows
// is written again, because such a write may have undone it. A document whose row has a newer
// version is listed for a resync. All other events are judged when their message is received
// again.
//
// The state never says whether a write was made: if the answer of a turn that wrote is lost, the
// turn is retried with its old state.
func (t *turn) outage(ctx context.Context) flight.State {
	next := t.state
	next.Turn++
	if err := t.read(ctx, t.docs, shard.Consistent); err != nil {
		// Only the first turn writes. Later turns wait until the table is back.
		if t.state.Turn == 0 {
			t.writeOutage(ctx)
		}
		next.ReassertAfter = 0
		return t.next(ctx, next)
	}
	switch {
	case t.state.ReassertAfter == 0:
		// Another invocation that could not reach the table may still be writing. Wait until it
		// has certainly ended.
		next.ReassertAfter = t.now().Add(t.config.Lease(t.sinkName))
		next.WakeAt = t.wakeText(next.ReassertAfter)
		return next
	case t.now() < t.state.ReassertAfter: // woken early
		next.WakeAt = t.wakeText(t.state.ReassertAfter)
		return next
	}
	if !t.sink.look(ctx) {
		return t.next(ctx, next)
	}
	t.sink.rebuild = t.sink.row
	t.reassert(ctx)
	if t.left.Empty() {
		return t.end(ctx)
	}
	next.Remaining = t.left
	return t.next(ctx, next)
}

// next returns the state that wakes after a back-off. If this execution would end first, the
// flight continues in a new one.
func (t *turn) next(ctx context.Context, next flight.State) flight.State {
	next.WakeAt = t.wakeText(t.now().Add(max(t.delay(next.Turn), time.Second)))
	if t.outlives(next) && t.goOn(ctx, next, mustGo) {
		return finished(next)
	}
	return next
}

// writeOutage writes every document with the present time as its fence. Other writes use the
// time of their claim, but an outage write has no claim.
func (t *turn) writeOutage(ctx context.Context) {
	var ops []sink.Op
	var docs []*document
	ready, rest := t.prepare(ctx, t.docs)
	t.loadReferences(ctx, ready) // without a lease, as all steps here
	for _, d := range rest {
		t.note(t.about(d, d.newest(), journal.Waiting, "no room or time to write it open: until the table is back"))
	}
	for _, d := range ready {
		if d.unloaded != "" {
			t.note(t.about(d, d.newest(), journal.Waiting, d.unloaded+": until the table is back"))
			continue
		}
		if d.fault != "" {
			continue // receive will make it a dead letter when the table is back
		}
		ops, docs = append(ops, d.op(t.now())), append(docs, d)
	}
	if len(ops) == 0 {
		return
	}
	outcomes, _ := t.send(ctx, ops)
	for i, o := range outcomes {
		t.note(t.about(docs[i], docs[i].newest(), journal.OutageWrite, o.Kind.String()))
	}
}

// reassert compares the documents that were written without a claim with their rows. It removes
// those from the flight that need nothing more.
func (t *turn) reassert(ctx context.Context) {
	// The flight ends before SQS's twelve hours do. Deletes that are not written again by then
	// are listed for a resync.
	last := t.clock.Now().After(t.manifest.Received.Add(queue.MaxHold - holdMargin))
	for _, d := range t.docs {
		e := d.newest()
		switch {
		case e == nil || d.row.Committed <= e.Key && !d.row.Took(e.Key):
			// its message is judged as new when it is received again
		case d.row.CommittedOp != shard.Delete || d.row.Committed <= e.Key:
			t.note(t.about(d, e, journal.OutageResync, "the row knows version key "+d.row.Committed.String()))
		default:
			err := t.deleteAgain(ctx, d)
			var refused *openError
			switch {
			case err == nil:
				t.note(t.about(d, e, journal.Reasserted, "the row knows it deleted"))
			case last || errors.Is(err, errOvertaken) || errors.As(err, &refused) && refused.Kind == sink.Rejected:
				t.note(t.about(d, e, journal.OutageResync, "its delete could not be asserted: "+err.Error()))
			default: // throttled, no answer, or leased: try again later
				t.note(t.about(d, e, journal.Waiting, "its delete is asserted again later: "+err.Error()))
				continue
			}
		}
		for _, e := range d.left() {
			t.drop(e)
		}
	}
}

// errOvertaken says that the row has a newer version than the delete. That version will be
// written, unless it is poison.
var errOvertaken = errors.New("a newer version has come")

// deleteAgain writes a committed delete again, under a lease.
func (t *turn) deleteAgain(ctx context.Context, d *document) error {
	// The lease keeps all other flights from writing the document.
	b := shard.Bid{Doc: d.id, Key: d.row.Committed, Token: t.h.NewToken(), Now: t.now(), Until: t.leaseEnd()}
	b.Fence = shard.NextFence(d.row, b.Now)
	l := b.Lease()
	switch a := t.ask(ctx, shard.Reassert(b)); {
	case a.err == nil, a.refused && a.row.Owner == l.Token: // only the answer was lost
	case a.refused && (a.row.Committed != l.Key || a.row.Pending > l.Key):
		return errOvertaken
	default:
		return a.err
	}
	ops := []sink.Op{{
		Doc: l.Doc.Plain(), Kind: shard.Delete, Fence: shard.Fence(l.At), Key: l.Key,
		At: l.At.Time(), Present: true,
	}}
	outcomes, _ := t.send(ctx, ops)
	t.mirror(ctx, ops, outcomes)
	o := outcomes[0]
	if o.Kind != sink.Applied {
		return &openError{o}
	}
	return t.endLease(ctx, l, d.row, func(shard.Row) shard.Write { return shard.Reasserted(l) }).err
}

type openError struct{ sink.Outcome }

func (e *openError) Error() string { return e.Kind.String() + ": " + e.Reason }
