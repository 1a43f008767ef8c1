// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// engine calls the sink for a turn. Each call has a deadline. A panic of the sink's client counts
// as an answer.
type engine struct {
	*invocation
	sink sink.Sink
}

// send makes one bulk call to the sink.
func (e *engine) send(ctx context.Context, ops []sink.Op) (outcomes []sink.Outcome, p *fanout.Panic) {
	return e.call(ctx, "write to the sink", e.config.Index.SinkDeadline, ops,
		func(call context.Context) []sink.Outcome { return e.sink.Write(call, ops) })
}

// call makes one bulk call with a deadline. If the sink panics or returns a wrong number of
// outcomes, every outcome is unknown.
func (e *engine) call(ctx context.Context, doing string, limit time.Duration, ops []sink.Op,
	write func(call context.Context) []sink.Outcome,
) (outcomes []sink.Outcome, p *fanout.Panic) {
	// sinkMargin leaves time for the writes to the table that follow.
	call, cancel := e.clock.Deadline(ctx, max(min(limit, e.remaining()-sinkMargin), time.Millisecond))
	defer cancel()
	unknown := sink.Outcome{Kind: sink.Unknown, Reason: "the answer has a wrong number of items"}
	if p = e.catch(doing, "", func() { outcomes = write(call) }); p != nil {
		unknown.Reason = p.Error()
	}
	if p != nil || len(outcomes) != len(ops) {
		outcomes = slices.Repeat([]sink.Outcome{unknown}, len(ops))
	}
	return outcomes, p
}

// ping asks whether the sink can be reached. A panic of the sink's client counts as a missing
// answer.
func (e *engine) ping(ctx context.Context) (err error) {
	if p := e.catch("ping the sink", "", func() { err = e.sink.Ping(ctx) }); p != nil {
		return p
	}
	return err
}

// mirrorTime is the longest time that a turn waits for the new index of a rebuild.
const mirrorTime = time.Second

// mirror is the new index of a collection that is being rebuilt.
type mirror struct {
	*engine
	health *health
}

// write also writes the applied documents to the new index, if the collection is being rebuilt
// (design section 15). It runs after the write to the index in use, never in parallel: a document
// that only the new index holds would count as deleted in the index in use. Documents that the new
// index may lack are recorded before their COMMIT. If that record is refused, the name is being
// switched to the new index, and nothing is committed.
func (s *mirror) write(ctx context.Context, ops []sink.Op, outcomes []sink.Outcome) {
	var which []int
	var copies []sink.Op
	for i, op := range ops {
		if outcomes[i].Kind == sink.Applied && string(op.Doc.Collection()) == s.health.rebuild.RebuildOf {
			op.Present = false
			which, copies = append(which, i), append(copies, op)
		}
	}
	if len(copies) == 0 || s.health.rebuild.RebuildAt == 0 {
		return
	}
	missed, why := which[:0], ""
	for i, o := range s.writeInto(ctx, copies) {
		if o.Kind != sink.Applied && o.Kind != sink.Newer {
			missed = append(missed, which[i])
			why = o.Kind.String() + ": " + o.Reason
		}
	}
	if len(missed) == 0 {
		return
	}
	row, _ := s.config.RowAt(ops[missed[0]].Doc, s.sinkName)
	s.note(journal.Note{Step: journal.Missed, Doc: row, Count: len(missed), Detail: why})
	if a := s.ask(ctx, shard.Miss(s.sinkName, s.health.rebuild.RebuildAt)); a.err == nil {
		return
	}
	for _, i := range missed {
		outcomes[i] = sink.Outcome{Kind: sink.Unknown, Reason: "the new index of the rebuild may lack the document: " + why}
	}
}

// writeInto makes one bulk call to the new index. It does nothing if the sink cannot have a new
// index.
func (s *mirror) writeInto(ctx context.Context, ops []sink.Op) (outcomes []sink.Outcome) {
	outcomes, _ = s.call(ctx, "write to the new index", mirrorTime, ops, func(call context.Context) []sink.Outcome {
		if m, ok := s.sink.(sink.Mirror); ok {
			return m.Into(ops[0].Doc.Collection(), s.health.rebuild.RebuildInto).Write(call, ops)
		}
		return nil
	})
	return outcomes
}
