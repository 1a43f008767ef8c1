package index

import (
	"context"
	"errors"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// prepare decodes the messages again and builds the bodies of documents whose payload is in the
// message. A payload by reference is loaded later, under the lease: see fetch. A document that
// can never be built is claimed too, to be rejected. Pointers to messages are followed here, for
// at most half of the remaining time.
//
// prepare stops at the bytes of one bulk request, or at as many references as are loaded in
// parallel. rest is for the next round.
func (t *turn) prepare(ctx context.Context, docs []*document) (ready, rest []*document) {
	ctx, cancel := t.clock.Deadline(source.LoadAtMost(ctx, maxLoadBytes), (t.remaining()-sinkMargin)/2)
	defer cancel()
	limit, bytes, references := t.config.Sinks[t.sinkName].BulkBytes, int64(0), 0
	var more []*document // more references than this round loads
	probes := map[*origin]bool{}
	// The first part is taken even if its bytes alone exceed the limit.
	for rest = docs; len(rest) > 0 && ctx.Err() == nil && (bytes == 0 || bytes < int64(limit)) &&
		references < maxParallel; {
		part := rest[:min(maxParallel, len(rest))]
		rest = rest[len(part):]
		t.decode(ctx, part)
		errs := fanout.Map(t.parallel, maxParallel, part, func(d *document) error {
			return t.apart(d, func() error { return t.prepareOne(ctx, d) })
		})
		t.forget(rest)
		for i, d := range part {
			t.lost("load the message", d.id, errs[i])
			later := t.now().Add(t.delay(t.state.Turn))
			switch bytes += int64(len(d.body)); {
			case errs[i] != nil:
				t.wait(d, later, "its message cannot be loaded now")
			case d.reference != nil && t.origin(d).away != "":
				t.wait(d, max(later, t.now().Add(t.origin(d).after)), t.origin(d).away)
			case d.reference != nil && (references == maxParallel || !t.mayLoad(d, probes)):
				more = append(more, d)
			case d.reference != nil:
				references++
				fallthrough
			default:
				ready = append(ready, d)
			}
		}
	}
	return ready, append(more, rest...)
}

// prepareOne returns why the document cannot be built now. If it never can be, it gets a fault.
func (t *turn) prepareOne(ctx context.Context, d *document) error {
	e := d.newest()
	m := t.message(e)
	d.body, d.fault, d.faultFor, d.reference, d.unloaded, d.loadAfter = nil, "", "", nil, "", 0
	// The manifest has the message as received. It decodes as in receive, unless the settings
	// changed.
	results := t.results(ctx, e)
	invalid := results[min(e.Index, len(results)-1)].Invalid
	if invalid != nil && invalid.Transient() {
		return invalid.Err
	}
	if invalid != nil || e.Index >= len(results) || results[e.Index].Event.Doc != d.id {
		d.fault = "the message decodes differently than when it was held: were the source's settings changed?"
		d.faultFor = deadletter.Contract
		return nil //nolint:nilerr // the document has the fault: nothing is to be tried again
	}
	ev := results[e.Index].Event
	d.version = ev.Version
	switch {
	case e.Op == shard.Delete:
	case ev.DataRef == "":
		t.makeBody(d, *m, ev)
	case ev.Fetch == "" && t.h.Payloads == nil, ev.Fetch != "" && t.h.Fetcher == nil:
		d.fault, d.faultFor = "dataref: payloads by reference are not configured", deadletter.Payload
	default:
		d.reference = &ev
	}
	return nil
}

// makeBody builds the document for the sink, or records why it can never be built.
func (t *turn) makeBody(d *document, m queue.Message, ev event.Event) {
	var fault *event.Invalid
	body, err := t.h.Sources.Document(m, ev)
	switch {
	case err == nil:
		d.body = t.plain(d, body)
	case errors.As(err, &fault) && fault.Stale:
		t.stale(d, fault)
	case errors.As(err, &fault):
		d.fault, d.faultFor = fault.Detail(), fault.Reason
	default:
		d.fault, d.faultFor = err.Error(), deadletter.RejectedBySink
	}
}

// claim is step 3: CLAIM each document, in parallel and bounded. It returns the documents whose
// lease this turn has. The row in a refusal may ask for the other form of CLAIM: claim then
// tries again with a new token.
func (t *turn) claim(ctx context.Context, docs []*document) []*document {
	var ours []*document
	// Three rounds at most. If a row changed before each of them, its document waits for the
	// next turn.
	for range 3 {
		bid := func(d *document) claimAnswer { return t.bid(ctx, d) }
		docs = each(t.invocation, docs, bid, func(d *document, a claimAnswer) bool {
			won, retry := t.claimed(d, a)
			if won {
				ours = append(ours, d)
			}
			return retry
		})
	}
	t.waitAll(docs, t.now(), errChanging.Error())
	return ours
}

type claimAnswer struct {
	answer
	bid shard.Bid
}

// bid is one CLAIM with its retries. All retries have the same token. If an earlier try was
// applied, it refuses the later one, and the token shows that the claim is ours. A new bid has a
// new token, so an older claim is never mistaken for it.
func (t *turn) bid(ctx context.Context, d *document) claimAnswer {
	a := claimAnswer{bid: shard.Bid{
		Doc: d.id, Key: d.newest().Key, Token: t.h.NewToken(), Now: t.now(), Until: t.leaseEnd(), Cap: d.step.Cap,
		MinInterval: t.config.Timing(d.id.Collection()).MinInterval, Again: d.step.Again,
	}}
	a.bid.Fence = shard.NextFence(d.row, a.bid.Now)
	a.answer = t.ask(ctx, shard.Claim(a.bid))
	if a.refused && shard.OwnClaim(a.row, a.bid) {
		a.err = nil // an earlier try was applied, and its answer was lost
	}
	return a
}

// claimed handles the answer of one CLAIM. It reports whether the lease is ours (won), or
// whether to try again with the row's new image (retry).
func (t *turn) claimed(d *document, a claimAnswer) (won, retry bool) {
	e := d.newest()
	if a.err == nil {
		d.row, d.before = a.row, a.old
		// The time of the claim becomes the fence, which a sink with versions compares (design
		// section 5).
		d.lease = a.bid.Lease()
		if off := a.bid.Fence - a.bid.Now; off > 0 {
			t.note(t.about(d, e, journal.ClockOff, "the row's last write lies "+a.bid.Fence.Sub(a.bid.Now).String()+" ahead"))
		}
		n := t.about(d, e, journal.Claimed, "")
		n.Until, n.Old = a.bid.Until.Time(), a.old
		t.note(n)
		return true, false
	}
	if a.unknown() {
		// The lease may be ours, but this turn cannot know. The lease expires by itself.
		t.wait(d, a.bid.Until+1, "CLAIM got no answer")
		return false, false
	}
	return false, t.refused(d, a.row)
}
