package index

import (
	"context"
	"errors"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// prepare decodes the messages again, and makes the bodies of the documents that carry theirs. A
// document whose payload is a reference is loaded under its lease: see fetch. One that can never be
// made is claimed all the same, to be rejected. Pointers to messages are followed here, for half of
// the time that is left. It stops at the bytes of one bulk request, or at as many references as are
// loaded at the same time: rest is for the next round.
func (t *turn) prepare(ctx context.Context, docs []*document) (ready, rest []*document) {
	ctx, cancel := t.h.Clock.Deadline(source.LoadAtMost(ctx, maxLoadBytes), (t.remaining()-sinkMargin)/2)
	defer cancel()
	limit, bytes, references := t.h.Config.Sinks[t.h.SinkName].BulkBytes, int64(0), 0
	var more []*document // with references that are too many
	probes := map[*origin]bool{}
	// The first part is taken even where its bytes alone exceed the limit.
	for rest = docs; len(rest) > 0 && ctx.Err() == nil && (bytes == 0 || bytes < int64(limit)) &&
		references < maxParallel; {
		part := rest[:min(maxParallel, len(rest))]
		rest = rest[len(part):]
		t.decode(ctx, part)
		errs := fanout.Map(t.h.Parallel, maxParallel, part, func(d *document) error {
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

// prepareOne returns why the document cannot be made now. One that can never be made gets a fault.
func (t *turn) prepareOne(ctx context.Context, d *document) error {
	e := d.newest()
	m := t.message(e)
	d.body, d.fault, d.faultFor, d.reference, d.unloaded, d.loadAfter = nil, "", "", nil, "", 0
	// The manifest keeps the message as received. It decodes as it did for receive, unless the
	// settings changed since.
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

// makeBody makes what the sink gets, or finds that it can never be made.
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

// claim is step 3: CLAIM each document, in parallel and bounded, and return those that are ours. A
// refusal's image may ask for the other form of CLAIM: then once more, with a token of its own.
func (t *turn) claim(ctx context.Context, docs []*document) []*document {
	var ours []*document
	// Three rounds bound the tries. A row that changes between all of them waits for the next turn.
	for range 3 {
		bid := func(d *document) claimAnswer { return t.bid(ctx, d) }
		docs = each(t, docs, bid, func(d *document, a claimAnswer) bool {
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

// each asks the table about documents, beside each other. Then it takes the answers in, one after
// the other: one goroutine keeps the flight's own state. It returns the documents for which take
// reports true.
func each[A any](t *turn, docs []*document, ask func(*document) A, take func(*document, A) bool) (yes []*document) {
	answers := fanout.Map(t.h.Parallel, maxParallel, docs, ask)
	for i, d := range docs {
		if take(d, answers[i]) {
			yes = append(yes, d)
		}
	}
	return yes
}

// answer is what became of a write: the rows before and after it, or the row that refused it.
type answer struct {
	old, row shard.Row
	err      error
	refused  bool // err is a refusal
}

// unknown reports whether the write may have been applied, or not.
func (a answer) unknown() bool { return a.err != nil && !a.refused }

// ask is one conditional write with its retries and its answer. A refusal needs no second read,
// because it returns the row (design section 5).
func (t *turn) ask(ctx context.Context, w shard.Write) answer {
	old, err := t.rows().Write(ctx, w)
	if refused, ok := shard.AsRefused(err); ok {
		t.note(journal.Note{Step: journal.RowRefused, Doc: w.Doc, Detail: w.Transition.String()})
		return answer{refused.Row, refused.Row, err, true}
	}
	t.lost(w.Transition.String(), w.Doc, err)
	return answer{old, w.Apply(old), err, false}
}

type claimAnswer struct {
	answer
	bid shard.Bid
}

// bid is one CLAIM with its retries. They carry the same token: the second of two that were applied
// is refused by the first, and recognised as ours. A new bid has a new token, so the row never
// shows an older claim as this one.
func (t *turn) bid(ctx context.Context, d *document) claimAnswer {
	a := claimAnswer{bid: shard.Bid{
		Doc: d.id, Key: d.newest().Key, Token: t.h.NewToken(), Now: t.now(), Until: t.leaseEnd(), Cap: d.step.Cap,
		MinInterval: t.h.Config.Timing(d.id.Collection()).MinInterval, Again: d.step.Again,
	}}
	a.bid.Fence = shard.NextFence(d.row, a.bid.Now)
	a.answer = t.ask(ctx, shard.Claim(a.bid))
	if a.refused && shard.OwnClaim(a.row, a.bid) {
		a.err = nil // applied before, and only its answer was lost
	}
	return a
}

// claimed takes in the answer of one CLAIM: ours, worth another try with the row's new image, or
// neither.
func (t *turn) claimed(d *document, a claimAnswer) (won, retry bool) {
	e := d.newest()
	if a.err == nil {
		d.row, d.known, d.before = a.row, true, a.old
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
		// The claim may be ours without our knowing. It runs out by itself.
		t.wait(d, a.bid.Until+1, "CLAIM got no answer")
		return false, false
	}
	return false, t.refused(d, a.row)
}

// refused decides once more by the row that refused a write of the newest version: it is as good as
// a consistent read. It reports whether that version is worth another try.
func (t *turn) refused(d *document, row shard.Row) (again bool) {
	e := d.newest()
	d.row, d.known = row, true
	switch act := t.settle(d, true); {
	case act == shard.ActClaim && d.newest() == e:
		return true
	case act == shard.ActClaim, act == shard.ActAdmit:
		t.waitForOlder(d)
	}
	return false
}

// leaseEnd is the safety-critical number: no request of this invocation can be applied after it.
// The platform kills late and clocks differ (guard), and a sink without versions may still apply a
// request after we hung up (applyDelay).
func (t *turn) leaseEnd() shard.Micros {
	c := t.h.Config
	return shard.MicrosOf(t.hard.Add(c.Index.Guard + c.ApplyDelay(t.h.SinkName)))
}
