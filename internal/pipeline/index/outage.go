package index

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// outage is the turn of a flight that exists because the table is away and the settings say
// `tableOutage: open`. While the table is away the documents are written once, without a claim, and
// audited; nothing is acknowledged. When the table is back, deletes that the rows know and that
// such a write may have undone are asserted again. Documents whose row knows a newer version are
// listed for a resync. Everything else is judged when its message is received again.
//
// The state never says that nothing was written: a turn that wrote and whose answer is lost is
// tried again with the state that it had.
func (t *turn) outage(ctx context.Context) flight.State {
	next := t.state
	next.Turn++
	if err := t.read(ctx, t.docs, shard.Consistent); err != nil {
		// Only the first turn writes. The later ones wait until the table is back.
		if t.state.Turn == 0 {
			t.writeOutage(ctx)
		}
		next.ReassertAfter = 0
		return t.next(ctx, next)
	}
	switch {
	case t.state.ReassertAfter == 0:
		// Another invocation that found the table away may still be writing: not before it has
		// certainly ended.
		next.ReassertAfter = t.now().Add(t.h.Config.Lease(t.h.SinkName))
		next.WakeAt = t.wakeText(next.ReassertAfter)
		return next
	case t.now() < t.state.ReassertAfter: // woken early
		next.WakeAt = t.wakeText(t.state.ReassertAfter)
		return next
	}
	if !t.look(ctx, &t.sink) {
		return t.next(ctx, next)
	}
	t.rebuild = t.sink.row
	t.reassert(ctx)
	if t.left.Empty() {
		return t.end(ctx)
	}
	next.Remaining = t.left
	return t.next(ctx, next)
}

// next is the state that wakes after a back-off, in a new execution where this one would end first.
func (t *turn) next(ctx context.Context, next flight.State) flight.State {
	next.WakeAt = t.wakeText(t.now().Add(max(t.delay(next.Turn), time.Second)))
	if t.outlives(next) && t.goOn(ctx, next, mustGo) {
		return finished(next)
	}
	return next
}

// writeOutage writes every document with the present time as its fence. Without a claim there is no
// claim's time, which is the fence of every other write.
func (t *turn) writeOutage(ctx context.Context) {
	var ops []sink.Op
	var docs []*document
	ready, rest := t.prepare(ctx, t.docs)
	t.loadReferences(ctx, ready) // without a lease, as everything here
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

// reassert compares what was written open with the rows, and takes out of the flight what needs
// nothing more.
func (t *turn) reassert(ctx context.Context) {
	// Before SQS's twelve hours end, the flight ends too. Deletes that are not asserted by then are
	// listed for a resync.
	last := t.h.Clock.Now().After(t.manifest.Received.Add(queue.MaxHold - holdMargin))
	for _, d := range t.docs {
		e := d.newest()
		switch {
		case e == nil || d.row.Committed <= e.Key: // judged as new when its message is received again
		case d.row.CommittedOp != shard.Delete:
			t.note(t.about(d, e, journal.OutageResync, "the row knows version key "+d.row.Committed.String()))
		default:
			err := t.deleteAgain(ctx, d)
			var refused *openError
			switch {
			case err == nil:
				t.note(t.about(d, e, journal.Reasserted, "the row knows it deleted"))
			case last || errors.Is(err, errOvertaken) || errors.As(err, &refused) && refused.Kind == sink.Rejected:
				t.note(t.about(d, e, journal.OutageResync, "its delete could not be asserted: "+err.Error()))
			default: // throttled, no answer, or leased: once more
				t.note(t.about(d, e, journal.Waiting, "its delete is asserted again later: "+err.Error()))
				continue
			}
		}
		for _, e := range d.left() {
			t.drop(e)
		}
	}
}

// errOvertaken says that the row knows something newer than the delete, which will be written
// unless it turns out to be poison.
var errOvertaken = errors.New("a newer version has come")

// deleteAgain writes a committed delete once more, under a lease.
func (t *turn) deleteAgain(ctx context.Context, d *document) error {
	// The lease keeps every other flight from writing the document meanwhile.
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

// send is one bulk call to the sink.
func (t *turn) send(ctx context.Context, ops []sink.Op) (outcomes []sink.Outcome, p *fanout.Panic) {
	return t.call(ctx, "write to the sink", t.h.Config.Index.SinkDeadline, ops,
		func(call context.Context) []sink.Outcome { return t.h.Sink.Write(call, ops) })
}

// call is one bulk call with its deadline. A sink that cannot count is not to be believed in
// anything, and after a panic of its client nothing is known.
func (t *turn) call(ctx context.Context, doing string, limit time.Duration, ops []sink.Op,
	write func(call context.Context) []sink.Outcome,
) (outcomes []sink.Outcome, p *fanout.Panic) {
	// Whatever the sink does, sinkMargin is left for the writes to the table that follow.
	call, cancel := t.h.Clock.Deadline(ctx, max(min(limit, t.remaining()-sinkMargin), time.Millisecond))
	defer cancel()
	unknown := sink.Outcome{Kind: sink.Unknown, Reason: "the answer has a wrong number of items"}
	if p = t.catch(doing, "", func() { outcomes = write(call) }); p != nil {
		unknown.Reason = p.Error()
	}
	if p != nil || len(outcomes) != len(ops) {
		outcomes = slices.Repeat([]sink.Outcome{unknown}, len(ops))
	}
	return outcomes, p
}
