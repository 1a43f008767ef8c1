package exchange

import (
	"context"
	"errors"

	"github.com/lullhq/lull/sink"
)

// Classes of outcomes that do not depend on the engine.
const (
	classOtherCollection = "other_collection" // the sink's index holds another collection

	classNotSent       = "not_sent"       // our time was over, or an earlier request was refused whole
	classNotNarrowed   = "not_narrowed"   // refused with others: which of them is to blame is not known yet
	ClassNoCredentials = "no_credentials" // the request could not be authenticated, and was not sent
	ClassUnreachable   = "unreachable"    // no connection: nothing was sent
	ClassInterrupted   = "interrupted"    // the context ended, or the connection broke, before the answer
)

// Late is the outcome of an op for which our time was over.
var Late = sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: classNotSent}

// Undelivered is the outcome of the ops of a request that got no whole answer; false where it got
// one.
func Undelivered(ctx context.Context, a Answer) (sink.Outcome, bool) {
	switch {
	case a.Err == nil:
		return sink.Outcome{}, false
	case !a.Sent && (ctx.Err() != nil || errors.Is(a.Err, errLate)):
		return Late, true
	case a.Unauthenticated():
		return sink.Outcome{Kind: sink.Configuration, Reason: ClassNoCredentials}, true
	case !a.Sent:
		return sink.Outcome{Kind: sink.Throttled, Reason: ClassUnreachable}, true
	}
	return sink.Outcome{Kind: sink.Unknown, Status: a.Status, Reason: ClassInterrupted}, true
}
