// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"errors"

	"github.com/lullhq/lull/sink"
)

// Classes of outcomes that do not depend on the engine.
const (
	classOtherCollection = "other_collection" // the sink's index is for another collection

	classNotSent = "not_sent" // there was no time left, or the engine refused an earlier request as a whole
	// refused together with other documents: lull does not know yet which document is to blame
	classNotNarrowed   = "not_narrowed"
	ClassNoCredentials = "no_credentials" // the request was not sent, because authenticating it failed
	ClassUnreachable   = "unreachable"    // no connection: nothing was sent
	ClassInterrupted   = "interrupted"    // the context ended, or the connection broke, before the answer
)

// Late is the outcome of an op that was not sent because no time was left.
var Late = sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: classNotSent}

// Undelivered returns the outcome for all ops of a request whose answer did not arrive completely.
// Undelivered returns false if the whole answer arrived.
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
