package index

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// write is step 4: one bulk call for all claimed documents, then each outcome's row of the table.
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
		began := t.h.Clock.Now()
		outcomes, p := t.send(ctx, ops)
		t.sent, t.took = t.sent+len(ops), t.h.Clock.Now().Sub(began)
		if t.suspect(sent, p != nil); p == nil {
			t.doubt(ctx, sent, ops, outcomes)
			t.noteConfiguration(outcomes)
			// Before the outcomes: a RELEASE then waits for the circuit breaker that this very request
			// opened. A panic is not the sink's fault.
			t.judgeHealth(ctx, sent, outcomes)
			t.mirror(ctx, ops, outcomes)
		}
		t.finishAll(len(sent), func(i int) func() { return t.outcome(ctx, sent[i], outcomes[i]) })
	}
	t.finishAll(len(broken), func(i int) func() { return t.broken(ctx, broken[i]) })
}

// op writes the newest version as it was made. Its fence is the time of its claim, or, without a
// claim, the present.
func (d *document) op(at shard.Micros) sink.Op {
	e := d.newest()
	return sink.Op{
		Doc: d.id.Plain(), Kind: e.Op, Fence: shard.Fence(at), Key: e.Key, Version: d.version, At: at.Time(),
		Document: d.body,
	}
}

// broken ends the claim of a document that cannot be made. No request was made for it.
func (t *turn) broken(ctx context.Context, d *document) func() {
	if d.faultFor == deadletter.Panic && !t.lastRefusal(d) {
		return t.release(ctx, d, d.fault, 0, true)
	}
	return t.rejecting(ctx, d, d.faultFor, d.fault)
}

// noteConfiguration alarms once for all ops that a request could not write for the engine's sake,
// by the first answer.
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

// lastRefusal reports whether one more refusal is more than are borne.
func (t *turn) lastRefusal(d *document) bool {
	return d.row.Refusals+1 >= int64(t.h.Config.Retry.MaxRefusals)
}

// finishAll does n documents' I/O in parallel; what it returns keeps the flight's own state, one
// after the other.
func (t *turn) finishAll(n int, do func(i int) func()) {
	results := make([]func(), n)
	t.h.Parallel.Each(maxParallel, n, func(i int) { results[i] = do(i) })
	for _, finish := range results {
		finish()
	}
}

// split separates the documents of which a question is true from the others.
func split(docs []*document, is func(*document) bool) (yes, no []*document) {
	for _, d := range docs {
		if is(d) {
			yes = append(yes, d)
		} else {
			no = append(no, d)
		}
	}
	return yes, no
}

// outcome carries out one row of the table of design section 8. It does the I/O and returns what to
// note in the flight's state.
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
	default: // Unknown, and Newer under a live lease: lease and claimed stay and run out
		return func() {
			if o.Kind == sink.Newer && t.now() <= d.row.LeaseUntil {
				t.note(t.about(d, e, journal.SinkNewer, o.Reason))
			}
			t.note(t.about(d, e, journal.OutcomeUnknown, why))
			t.wait(d, d.row.LeaseUntil+1, "the write's outcome is unknown")
		}
	}
}

// errChanging says that a row changed between every two tries.
var errChanging = errors.New("the row keeps changing")

// endLease carries out a write that ends a lease, in the form that the newest image asks for. It
// returns the row before and after. A refusal is returned with the row where the lease is somebody
// else's.
func (t *turn) endLease(ctx context.Context, l shard.Lease, image shard.Row,
	form func(image shard.Row) shard.Write,
) (a answer) {
	// One call in the common case. Another follows only a refusal whose image asks for another
	// form.
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

// commit is COMMIT of what was written, or of what needed no write. Where it is refused that never
// counts as success.
func (t *turn) commit(ctx context.Context, d *document, e *held, written bool) func() {
	a := t.endLease(ctx, d.lease, d.row, func(image shard.Row) shard.Write {
		return shard.Commit(d.lease, e.Op, t.now(), t.h.Config.Expires(t.h.Clock.Now()), image)
	})
	return func() {
		switch {
		case a.refused: // endLease recognises our own lost answer: the lease is not ours any more
			t.note(t.about(d, e, journal.LeaseLost, "COMMIT refused: the lease is somebody else's"))
			d.row, d.known = a.row, true
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

// unended keeps a document whose lease could not be ended: until the lease has run out where
// nothing is known, so that there is never another claim in this invocation.
func (t *turn) unended(d *document, err error, write string) {
	if errors.Is(err, errChanging) {
		t.wait(d, t.now(), err.Error())
		return
	}
	t.wait(d, d.row.LeaseUntil+1, write+" got no answer")
}

// release is RELEASE: nothing of what this claim asked for was applied. The row keeps `claimed`
// (design section 5).
func (t *turn) release(ctx context.Context, d *document, why string, after time.Duration, refused bool) func() {
	a := t.endLease(ctx, d.lease, d.row, func(shard.Row) shard.Write { return shard.Release(d.lease, why, refused) })
	return func() {
		if a.err != nil {
			t.unended(d, a.err, "RELEASE")
			return
		}
		t.note(t.about(d, d.newest(), journal.Released, why))
		// A throttle backs off by the flight's turns, a refusal by the document's refusals.
		n := t.state.Turn
		if refused {
			n = int(d.row.Refusals)
		}
		t.wait(d, max(t.now().Add(max(t.delay(n), after)), t.sink.next), "back-off: "+why)
	}
}

// rejecting sends the dead letter and then does REJECT. Where the dead letter cannot be sent the
// message stays and is tried again.
func (t *turn) rejecting(ctx context.Context, d *document, reason deadletter.Reason, detail string) func() {
	e := d.newest()
	// The dead letter is stored before the row says so. A crash in between sends it again, and
	// parking is idempotent (design section 10).
	id, err := t.sendLetter(ctx, d, e, reason, detail)
	if t.lost("send the dead letter", d.id, err) {
		return t.release(ctx, d, "refused: dead letter not sent", 0, false)
	}
	why := string(reason) + ": " + detail
	a := t.endLease(ctx, d.lease, d.row, func(image shard.Row) shard.Write {
		return shard.Reject(d.lease, why, t.h.Config.Expires(t.h.Clock.Now()), image)
	})
	return func() {
		if a.err != nil {
			t.unended(d, a.err, "REJECT")
			return
		}
		d.row, d.known = a.row, true
		t.note(t.about(d, e, journal.Rejected, why))
		t.buried(d, e, id, why)
	}
}

// buried takes a version out of the flight whose dead letter is stored and whose row says so.
func (t *turn) buried(d *document, e *held, letterID, why string) {
	t.drop(e)
	n := t.about(d, e, journal.DeadLettered, why)
	if n.Letter = letterID; letterID == "" {
		n.Step = journal.Dropped // `deadLetters: none`
	}
	t.note(n)
	t.doneStored(d, e.Key)
	if next := d.newest(); next != nil {
		// REJECT set `claimed` back to what it was, PARK leaves it. If it is still higher, a claim
		// has an unknown outcome.
		if d.row.Claimed > next.Key {
			t.note(t.about(d, next, journal.Blocked,
				"a newer version may be in the sink and is a dead letter: redrive it first"))
		}
		t.waitForOlder(d)
	}
}

// sendLetter returns the dead letter's id, none where the settings want no dead letters.
func (t *turn) sendLetter(ctx context.Context, d *document, e *held, reason deadletter.Reason,
	detail string,
) (id string, err error) {
	m := *t.message(e)
	if t.h.Config.DeadLetters == config.DeadLettersNone {
		return "", nil
	}
	l := deadletter.New(m, reason, detail, d.id, e.Key, e.Index, t.h.Clock.Now())
	l.Sink, l.Lane = t.h.SinkName, string(t.manifest.Lane)
	if l.Refusals = d.row.Refusals; reason == deadletter.Refusals {
		l.Refusals++ // this one, which REJECT ends and no RELEASE counts
	}
	l.FirstError, l.LastError = d.row.LastError, detail
	out, err := l.Message()
	if err != nil {
		return "", err
	}
	return l.ID, queue.ErrorAt(t.h.Dead.Send(ctx, []queue.Outgoing{out}), 0)
}

// delay is the back-off with full jitter.
func (t *turn) delay(n int) time.Duration {
	r := t.h.Config.Retry
	return backoff.Policy{Min: r.BackoffMin, Max: r.BackoffMax, Jitter: t.h.Jitter}.Delay(n)
}
