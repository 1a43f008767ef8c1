package index

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// write is step 4: one bulk call for all claimed documents. Then it carries out the row of the
// design's table for each outcome.
func (t *turn) write(ctx context.Context, docs []*document) {
	broken, sent := split(docs, func(d *document) bool { return d.fault != "" })
	ops := make([]sink.Op, len(sent))
	for i, d := range sent {
		ops[i] = d.op(d.lease.At)
		ops[i].Present = d.row.CommittedOp == shard.Put
	}
	if len(ops) > 0 && !t.mayGo(ctx, len(ops)) {
		t.finishAll(len(sent), func(i int) func() {
			return t.release(ctx, sent[i], "never sent: maxDocumentsPerSecond", 0, false)
		})
	} else if len(ops) > 0 {
		began := t.clock.Now()
		outcomes, p := t.send(ctx, ops)
		t.sent, t.took = t.sent+len(ops), t.clock.Now().Sub(began)
		if t.suspect(sent, p != nil); p == nil {
			t.doubt(ctx, sent, ops, outcomes)
			t.noteConfiguration(outcomes)
			// Before the outcomes, so that a RELEASE waits for the circuit breaker that this
			// request opened. A panic is not the sink's fault.
			t.sink.judge(ctx, sent, outcomes)
			t.mirror(ctx, ops, outcomes)
		}
		t.finishAll(len(sent), func(i int) func() { return t.outcome(ctx, sent[i], outcomes[i]) })
	}
	t.finishAll(len(broken), func(i int) func() { return t.broken(ctx, broken[i]) })
}

// op returns the write of the newest version. Its fence is the time of its claim, or the present
// if it has no claim.
func (d *document) op(at shard.Micros) sink.Op {
	e := d.newest()
	return sink.Op{
		Doc: d.id.Plain(), Kind: e.Op, Fence: shard.Fence(at), Key: e.Key, Version: d.version, At: at.Time(),
		Document: d.body,
	}
}

// broken ends the claim of a document that cannot be built. No request was made for it.
func (t *turn) broken(ctx context.Context, d *document) func() {
	if d.faultFor == deadletter.Panic && !t.lastRefusal(d) {
		return t.release(ctx, d, d.fault, 0, true)
	}
	return t.rejecting(ctx, d, d.faultFor, d.fault)
}

// noteConfiguration raises one alarm for all ops of a request that failed because of the
// engine's configuration. It gives the first reason.
func (t *turn) noteConfiguration(outcomes []sink.Outcome) {
	n := journal.Note{Step: journal.SinkConfiguration}
	for _, o := range outcomes {
		if o.Kind == sink.Configuration {
			n.Detail = cmp.Or(n.Detail, o.Reason)
			n.Count++
		}
	}
	if n.Count > 0 {
		t.note(n)
	}
}

// lastRefusal reports whether one more refusal reaches the limit.
func (t *turn) lastRefusal(d *document) bool {
	return d.row.Refusals+1 >= int64(t.config.Retry.MaxRefusals)
}

// outcome carries out one row of the table in design section 8. It does the I/O and returns a
// function that updates the flight's state.
func (t *turn) outcome(ctx context.Context, d *document, o sink.Outcome) func() {
	e, why := d.newest(), o.Kind.String()+": "+o.Reason
	switch o.Kind {
	case sink.Applied:
		return t.commit(ctx, d, e, true)
	case sink.Throttled, sink.Configuration:
		return t.release(ctx, d, why, o.RetryAfter, false)
	case sink.Refused:
		if t.lastRefusal(d) {
			return t.rejecting(ctx, d, deadletter.Refusals, o.Reason)
		}
		return t.release(ctx, d, why, o.RetryAfter, true)
	case sink.Rejected:
		return t.rejecting(ctx, d, deadletter.RejectedBySink, o.Reason)
	default: // Unknown, and Newer under a live lease: the lease stays until it expires, and claimed stays
		return func() {
			if o.Kind == sink.Newer && t.now() <= d.row.LeaseUntil {
				t.note(t.about(d, e, journal.SinkNewer, o.Reason))
			}
			t.note(t.about(d, e, journal.OutcomeUnknown, why))
			t.wait(d, d.row.LeaseUntil+1, "the write's outcome is unknown")
		}
	}
}

// errChanging says that the row changed before every try.
var errChanging = errors.New("the row keeps changing")

// endLease does a write that ends a lease, in the form that the newest image of the row asks
// for. It returns the row before and after. If the lease belongs to another flight by now, it
// returns the refusal with that row.
func (t *turn) endLease(ctx context.Context, l shard.Lease, image shard.Row,
	form func(image shard.Row) shard.Write,
) (a answer) {
	// Usually one call. Another follows only if the row in a refusal asks for another form.
	for range 3 {
		w := form(image)
		switch a = t.ask(ctx, w); {
		case !a.refused:
			return a
		case shard.Ended(a.row, l, w): // only its answer was lost
			return answer{old: image, row: a.row}
		case a.row.Owner != l.Token:
			return a
		}
		image = a.row // only the form was wrong
	}
	return answer{row: image, err: errChanging}
}

// commit is COMMIT of a version that was written, or that needed no write. A refused COMMIT
// never counts as success.
func (t *turn) commit(ctx context.Context, d *document, e *held, written bool) func() {
	a := t.endLease(ctx, d.lease, d.row, func(image shard.Row) shard.Write {
		return shard.Commit(d.lease, e.Op, t.now(), t.config.Expires(t.clock.Now()), image)
	})
	return func() {
		switch {
		case a.refused: // not our own lost answer, which endLease recognises: another flight has the lease
			t.note(t.about(d, e, journal.LeaseLost, "COMMIT refused: the lease is somebody else's"))
			d.row = a.row
			t.wait(d, t.now(), "the lease was lost")
		case a.err != nil:
			t.unended(d, a.err, "COMMIT")
		default:
			if d.row = a.row; !written {
				t.unwritten(d, e, d.before)
				return
			}
			n := t.about(d, e, journal.Committed, "")
			n.Old = a.old
			t.drop(e)
			t.note(n)
			t.doneUpTo(d, e.Key)
		}
	}
}

// unended keeps a document whose lease could not be ended. If the answer was lost, it waits
// until the lease has expired, so that this invocation never claims it again.
func (t *turn) unended(d *document, err error, write string) {
	if errors.Is(err, errChanging) {
		t.wait(d, t.now(), err.Error())
		return
	}
	t.wait(d, d.row.LeaseUntil+1, write+" got no answer")
}

// release is RELEASE: no request of this claim was applied. The row keeps `claimed` (design
// section 5).
func (t *turn) release(ctx context.Context, d *document, why string, after time.Duration, refused bool) func() {
	a := t.endLease(ctx, d.lease, d.row, func(shard.Row) shard.Write { return shard.Release(d.lease, why, refused) })
	return func() {
		if a.err != nil {
			t.unended(d, a.err, "RELEASE")
			return
		}
		t.note(t.about(d, d.newest(), journal.Released, why))
		// After a throttle the back-off grows with the flight's turns, after a refusal with the
		// document's refusals.
		n := t.state.Turn
		if refused {
			n = int(d.row.Refusals)
		}
		t.wait(d, max(t.now().Add(max(t.delay(n), after)), t.sink.next), "back-off: "+why)
	}
}

// rejecting sends the dead letter and then does REJECT. If the dead letter cannot be sent, the
// message stays and is tried again.
func (t *turn) rejecting(ctx context.Context, d *document, reason deadletter.Reason, detail string) func() {
	e := d.newest()
	// The dead letter is sent before the row is changed. After a crash in between it is sent
	// again, and parking it twice does no harm (design section 10).
	id, err := t.sendLetter(ctx, d, e, reason, detail)
	if t.lost("send the dead letter", d.id, err) {
		release := t.release(ctx, d, "refused: dead letter not sent", 0, false)
		if !errors.Is(err, queue.ErrTooLarge) {
			return release
		}
		return func() {
			release()
			t.giveUp(d, e, "its dead letter is too large to be sent: SQS moves the message by its receive count")
		}
	}
	why := string(reason) + ": " + detail
	a := t.endLease(ctx, d.lease, d.row, func(image shard.Row) shard.Write {
		return shard.Reject(d.lease, why, t.config.Expires(t.clock.Now()), image)
	})
	return func() {
		if a.err != nil {
			t.unended(d, a.err, "REJECT")
			return
		}
		d.row = a.row
		t.note(t.about(d, e, journal.Rejected, why))
		t.buried(d, e, id, why)
	}
}

// buried removes a version from the flight after its dead letter is sent and its row says so.
func (t *turn) buried(d *document, e *held, letterID, why string) {
	t.drop(e)
	n := t.about(d, e, journal.DeadLettered, why)
	if n.Letter = letterID; letterID == "" {
		n.Step = journal.Dropped // `deadLetters: none`
	}
	t.note(n)
	t.doneStored(d, e.Key)
	if next := d.newest(); next != nil {
		// REJECT set `claimed` back to its value before the claim, PARK left it. If it is still
		// higher, a claim has an unknown outcome.
		if d.row.Claimed > next.Key {
			t.note(t.about(d, next, journal.Blocked,
				"a newer version may be in the sink and is a dead letter: redrive it first"))
		}
		t.waitForOlder(d)
	}
}

// sendLetter sends the dead letter and returns its id, "" if the settings want no dead letters.
func (t *turn) sendLetter(ctx context.Context, d *document, e *held, reason deadletter.Reason,
	detail string,
) (id string, err error) {
	m := *t.message(e)
	if t.config.DeadLetters == config.DeadLettersNone {
		return "", nil
	}
	l := deadletter.New(m, reason, detail, d.id, e.Key, e.Index, t.clock.Now())
	l.Sink, l.Lane = t.sinkName, string(t.manifest.Lane)
	if l.Refusals = d.row.Refusals; reason == deadletter.Refusals {
		l.Refusals++ // the last refusal, which REJECT ends and no RELEASE counts
	}
	l.FirstError, l.LastError = d.row.LastError, detail
	out, err := l.Message()
	if err != nil {
		return "", err
	}
	return l.ID, queue.ErrorAt(t.h.Dead.Send(ctx, []queue.Outgoing{out}), 0)
}
