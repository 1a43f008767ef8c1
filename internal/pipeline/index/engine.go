package index

import (
	"context"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/sink"
)

// engine is the sink as a turn calls it: each call has a deadline, and a panic of the sink's client
// is an answer.
type engine struct {
	*invocation
	sink sink.Sink
}

// send is one bulk call to the sink.
func (e *engine) send(ctx context.Context, ops []sink.Op) (outcomes []sink.Outcome, p *fanout.Panic) {
	return e.call(ctx, "write to the sink", e.config.Index.SinkDeadline, ops,
		func(call context.Context) []sink.Outcome { return e.sink.Write(call, ops) })
}

// call is one bulk call with its deadline. If the sink panics or returns a wrong number of
// outcomes, every outcome is unknown.
func (e *engine) call(ctx context.Context, doing string, limit time.Duration, ops []sink.Op,
	write func(call context.Context) []sink.Outcome,
) (outcomes []sink.Outcome, p *fanout.Panic) {
	// sinkMargin remains for the writes to the table that follow.
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

// ping asks whether the sink is there. A panic of its client counts as a missing answer.
func (e *engine) ping(ctx context.Context) (err error) {
	if p := e.catch("ping the sink", "", func() { err = e.sink.Ping(ctx) }); p != nil {
		return p
	}
	return err
}
