package exchange

import (
	"context"
	"sync/atomic"

	"github.com/lullhq/lull/sink"
)

// NotSent is the reason of ops that were held back.
const NotSent = "not_sent"

// late is the outcome of an op for which our time was over.
var late = sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: NotSent}

// Brake holds back what is not sent yet once an answer says that the engine takes nothing. It is
// safe for concurrent use.
type Brake struct{ by atomic.Pointer[sink.Outcome] }

// Saw takes an outcome into account.
func (b *Brake) Saw(o sink.Outcome) {
	if (o.Kind == sink.Throttled || o.Kind == sink.Configuration) && !o.Apart {
		b.by.CompareAndSwap(nil, &o)
	}
}

// Late is the outcome of an op whose request was not sent because our time was over; false for any
// other answer.
func Late(ctx context.Context, a Answer) (sink.Outcome, bool) {
	return late, a.Err != nil && !a.Sent && ctx.Err() != nil
}

// Held is the outcome of an op that must not be sent now; false where it may be. Nothing is sent
// once the context has ended.
func (b *Brake) Held(ctx context.Context) (sink.Outcome, bool) {
	if o := b.by.Load(); o != nil {
		return sink.Outcome{Kind: sink.Throttled, RetryAfter: o.RetryAfter, Status: o.Status, Reason: NotSent}, true
	}
	return late, ctx.Err() != nil
}
