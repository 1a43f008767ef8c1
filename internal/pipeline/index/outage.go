// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// outage is the turn of a flight that was started because the table was unreachable with
// `tableOutage: open`. While the table is unreachable, each document is written once, without a
// claim, and the write is noted. No message is acknowledged. When the table is back, lull repeats
// each delete that is committed in its row, because an outage write may have undone the delete. A
// document whose row has a newer version is listed for a resync. All other events are judged when
// their message is received again.
//
// The state never says whether a write was made. If the answer of a turn that wrote is lost, the
// state machine retries the turn with its old state.
func (t *turn) outage(ctx context.Context) flight.State {
	next := t.state
	next.Turn++
	if err := t.read(ctx, t.docs, shard.Consistent); err != nil {
		// Only the first turn writes. Later turns wait until the table can be reached again.
		if t.state.Turn == 0 {
			t.writeOutage(ctx)
		}
		next.ReassertAfter = 0
		return t.planner.execution.next(ctx, next)
	}
	switch {
	case t.state.ReassertAfter == 0:
		// Another invocation that could not reach the table may still be writing. Wait until that
		// invocation has certainly ended.
		next.ReassertAfter = t.now().Add(t.config.Lease(t.sinkName))
		next.WakeAt = t.planner.execution.wakeText(next.ReassertAfter)
		return next
	case t.now() < t.state.ReassertAfter: // the turn woke early
		next.WakeAt = t.planner.execution.wakeText(t.state.ReassertAfter)
		return next
	}
	if !t.sink.readHealth(ctx) {
		return t.planner.execution.next(ctx, next)
	}
	t.sink.rebuild = t.sink.row
	t.reasserter.reassert(ctx)
	if t.left.Empty() {
		return t.planner.ending.end(ctx)
	}
	next.Remaining = t.left
	return t.planner.execution.next(ctx, next)
}

// writeOutage writes every document with the present time as its fence. Other writes use the
// time of their claim, but an outage write has no claim.
func (t *turn) writeOutage(ctx context.Context) {
	var ops []sink.Op
	var docs []*document
	ready, rest := t.preparer.prepare(ctx, t.docs)
	t.loader.loadReferences(ctx, ready) // without a lease, like all steps of an outage turn
	for _, d := range rest {
		t.note(t.about(d, d.newest(), journal.Waiting, "no room or time for an outage write: until the table is back"))
	}
	for _, d := range ready {
		if d.unloaded != "" {
			t.note(t.about(d, d.newest(), journal.Waiting, d.unloaded+": until the table is back"))
			continue
		}
		if d.fault != "" {
			continue // receive will make the document a dead letter when the table is back
		}
		ops, docs = append(ops, d.op(t.now())), append(docs, d)
	}
	if len(ops) == 0 {
		return
	}
	outcomes, _ := t.engine.send(ctx, ops)
	for i, o := range outcomes {
		t.note(t.about(docs[i], docs[i].newest(), journal.OutageWrite, o.Kind.String()))
	}
}
