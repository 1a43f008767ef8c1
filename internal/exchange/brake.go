package exchange

import (
	"context"
	"sync/atomic"

	"github.com/lullhq/lull/sink"
)

// NotSent is the reason of ops that were held back.
const NotSent = "not_sent"

// Brake holds back what is not sent yet once an answer says that the engine takes nothing. It is
// safe for concurrent use.
type Brake struct{ by atomic.Pointer[sink.Outcome] }

// Saw takes an outcome into account.
func (b *Brake) Saw(o sink.Outcome) {
	if (o.Kind == sink.Throttled || o.Kind == sink.Configuration) && !o.Apart {
		b.by.CompareAndSwap(nil, &o)
	}
}

// Held is the outcome of an op that must not be sent now; false where it may be. Nothing is sent
// once the context has ended.
func (b *Brake) Held(ctx context.Context) (sink.Outcome, bool) {
	if o := b.by.Load(); o != nil {
		return sink.Outcome{Kind: sink.Throttled, RetryAfter: o.RetryAfter, Status: o.Status, Reason: NotSent}, true
	}
	return sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: NotSent}, ctx.Err() != nil
}
