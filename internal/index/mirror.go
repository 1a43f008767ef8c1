package index

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// mirrorTime is how long a turn waits for the new index of a rebuild at most.
const mirrorTime = time.Second

// mirror writes what the sink applied to the new index too, where the collection is rebuilt (design
// section 15). It comes after the index in use, never beside it: what only the new one holds was
// deleted in the other. What the new index does not have, or may not have, is noted before its
// COMMIT. Where that is refused the name is being switched, and nothing is committed.
func (t *turn) mirror(ctx context.Context, ops []sink.Op, outcomes []sink.Outcome) {
	var which []int
	var copies []sink.Op
	for i, op := range ops {
		if outcomes[i].Kind == sink.Applied && string(op.Doc.Collection()) == t.rebuild.RebuildOf {
			op.Present = false
			which, copies = append(which, i), append(copies, op)
		}
	}
	if len(copies) == 0 || t.rebuild.RebuildAt == 0 {
		return
	}
	missed, why := which[:0], ""
	for i, o := range t.into(ctx, copies) {
		if o.Kind != sink.Applied && o.Kind != sink.Newer {
			missed = append(missed, which[i])
			why = o.Kind.String() + ": " + o.Reason
		}
	}
	if len(missed) == 0 {
		return
	}
	row, _ := t.h.Config.RowAt(ops[missed[0]].Doc, t.h.SinkName)
	t.note(journal.Note{Step: journal.Missed, Doc: row, Count: len(missed), Detail: why})
	if _, err := t.put(ctx, shard.Miss(t.h.SinkName, t.rebuild.RebuildAt)); err == nil {
		return
	}
	for _, i := range missed {
		outcomes[i] = sink.Outcome{Kind: sink.Unknown, Reason: "the new index of a rebuild does not have it: " + why}
	}
}

// into is one bulk call to the new index.
func (t *turn) into(ctx context.Context, ops []sink.Op) (outcomes []sink.Outcome) {
	call, cancel := t.h.Clock.Deadline(ctx, max(min(mirrorTime, t.remaining()-sinkMargin), time.Millisecond))
	defer cancel()
	unknown := sink.Outcome{Kind: sink.Unknown, Reason: "no answer"}
	if m, ok := t.h.Sink.(sink.Mirror); ok {
		p := fanout.Catch(func() {
			outcomes = m.Into(ops[0].Doc.Collection(), t.rebuild.RebuildInto).Write(call, ops)
		})
		if p != nil {
			t.panicked("write to the new index", "", p)
		}
	}
	if len(outcomes) == len(ops) {
		return outcomes
	}
	outcomes = make([]sink.Outcome, len(ops))
	for i := range outcomes {
		outcomes[i] = unknown
	}
	return outcomes
}
