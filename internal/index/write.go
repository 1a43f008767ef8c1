package index

import (
	"context"
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
	var ops []sink.Op
	var sent, broken []*document
	for _, d := range docs {
		if d.fault != "" {
			broken = append(broken, d)
			continue
		}
		e := d.newest()
		ops = append(ops, sink.Op{
			Doc: d.id, Kind: e.Op, Fence: shard.Fence(d.lease.At), Key: e.Key, Version: d.version,
			At: d.lease.At.Time(), Document: d.body,
		})
		sent = append(sent, d)
	}
	if len(ops) > 0 {
		outcomes := t.send(ctx, ops)
		t.judgeHealth(ctx, sent, outcomes)
		t.finishAll(len(sent), func(i int) func() { return t.outcome(ctx, sent[i], outcomes[i]) })
	}
	t.finishAll(len(broken), func(i int) func() {
		return t.rejecting(ctx, broken[i], deadletter.Reason(broken[i].faultFor), broken[i].fault)
	})
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

// outcome carries out one row of the table of design section 8. It does the I/O and returns what to
// note in the flight's state.
func (t *turn) outcome(ctx context.Context, d *document, o sink.Outcome) func() {
	e := d.newest()
	switch o.Kind {
	case sink.Applied:
		return t.commit(ctx, d, e)
	case sink.Throttled:
		return t.release(ctx, d, e, o, false)
	case sink.Refused:
		if d.row.Refusals+1 >= int64(t.h.Config.Retry.MaxRefusals) {
			return t.rejecting(ctx, d, deadletter.Refusals, o.Reason)
		}
		return t.release(ctx, d, e, o, true)
	case sink.Rejected:
		return t.rejecting(ctx, d, deadletter.RejectedBySink, o.Reason)
	default: // Unknown, and Newer under a live lease: lease and claimed stay and run out
		return func() {
			if o.Kind == sink.Newer && t.now() <= d.row.LeaseUntil {
				t.note(t.about(d, e, journal.SinkNewer, o.Reason))
			}
			t.note(t.about(d, e, journal.OutcomeUnknown, o.Kind.String()+": "+o.Reason))
			t.wait(d, d.row.LeaseUntil+1, "the write's outcome is unknown")
		}
	}
}

// commit is COMMIT, in the form that the newest image asks for; the other form only after a
// refusal.
func (t *turn) commit(ctx context.Context, d *document, e *held) func() {
	image := d.row
	for range 3 {
		w := shard.Commit(d.lease, e.Op, t.now(), t.h.Config.Expires(t.h.Clock.Now()), image)
		old, err := t.put(ctx, w)
		refused, isRefused := shard.AsRefused(err)
		switch {
		case err == nil:
			return t.committed(d, e, old, w.Apply(old))
		case !isRefused:
			return func() { t.wait(d, d.row.LeaseUntil+1, "COMMIT got no answer") }
		case shard.Ended(refused.Row, d.lease, w):
			return t.committed(d, e, image, refused.Row)
		case refused.Row.Owner == d.lease.Token: // only the form was wrong
			image = refused.Row
		default:
			return func() {
				t.note(t.about(d, e, journal.LeaseLost, "COMMIT refused: the lease is somebody else's"))
				d.row, d.known = refused.Row, true
				t.wait(d, t.now(), "the lease was lost")
			}
		}
	}
	return func() { t.wait(d, t.now(), "the row keeps changing") }
}

func (t *turn) committed(d *document, e *held, old, row shard.Row) func() {
	return func() {
		d.row = row
		n := t.about(d, e, journal.Committed, "")
		n.Old = old
		t.drop(e)
		t.note(n)
		t.doneUpTo(d, e.Key)
	}
}

// release is RELEASE: nothing of what this claim asked for was applied.
func (t *turn) release(ctx context.Context, d *document, e *held, o sink.Outcome, refused bool) func() {
	w := shard.Release(d.lease, o.Kind.String()+": "+o.Reason, refused)
	_, err := t.put(ctx, w)
	if r, ok := shard.AsRefused(err); ok && shard.Ended(r.Row, d.lease, w) {
		err = nil
	}
	return func() {
		if err != nil {
			t.wait(d, d.row.LeaseUntil+1, "RELEASE got no answer") // never another claim in this invocation
			return
		}
		t.note(t.about(d, e, journal.Released, o.Kind.String()+": "+o.Reason))
		n := t.state.Turn
		if refused {
			n = int(d.row.Refusals)
		}
		t.wait(d, max(t.now().Add(max(t.delay(n), o.RetryAfter)), t.circuitNext), "back-off after "+o.Kind.String())
	}
}

// rejecting sends the dead letter and then does REJECT. Where the dead letter cannot be sent the message
// stays and is tried again.
func (t *turn) rejecting(ctx context.Context, d *document, reason deadletter.Reason, detail string) func() {
	e := d.newest()
	id, err := t.sendLetter(ctx, d, e, reason, detail)
	t.lost("send the dead letter", d.id, err)
	if err != nil {
		return t.release(ctx, d, e, sink.Outcome{Kind: sink.Refused, Reason: "dead letter not sent"}, false)
	}
	image := d.row
	for range 3 {
		w := shard.Reject(d.lease, string(reason)+": "+detail, t.h.Config.Expires(t.h.Clock.Now()), image)
		old, err := t.put(ctx, w)
		refused, isRefused := shard.AsRefused(err)
		switch {
		case err == nil || isRefused && shard.Ended(refused.Row, d.lease, w):
			row := w.Apply(old)
			if err != nil {
				row = refused.Row
			}
			return func() { t.rejected(d, e, row, id, string(reason)+": "+detail) }
		case isRefused && refused.Row.Owner == d.lease.Token:
			image = refused.Row
		default:
			return func() { t.wait(d, d.row.LeaseUntil+1, "REJECT got no answer") }
		}
	}
	return func() { t.wait(d, t.now(), "the row keeps changing") }
}

func (t *turn) rejected(d *document, e *held, row shard.Row, letterID, why string) {
	d.row, d.known = row, true
	t.note(t.about(d, e, journal.Rejected, why))
	t.drop(e)
	n := t.about(d, e, journal.DeadLettered, why)
	if n.Letter = letterID; letterID == "" {
		n.Step = journal.Dropped // `deadLetters: none`
	}
	t.note(n)
	t.doneStored(d, e.Key)
	if next := d.newest(); next != nil {
		if row.Claimed > next.Key {
			t.note(t.about(d, next, journal.Blocked,
				"a newer version may be in the sink and is a dead letter: redrive it first"))
		}
		t.wait(d, t.now(), "an older version has its turn next")
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

// put is one conditional write with its retries.
func (t *turn) put(ctx context.Context, w shard.Write) (old shard.Row, err error) {
	old, err = t.rows().Write(ctx, w)
	if _, ok := shard.AsRefused(err); ok {
		t.note(journal.Note{Step: journal.RowRefused, Doc: w.Doc, Detail: w.Transition.String()})
		return old, err
	}
	t.lost(w.Transition.String(), w.Doc, err)
	return old, err
}

// delay is the back-off with full jitter.
func (t *turn) delay(n int) time.Duration {
	r := t.h.Config.Retry
	return backoff.Policy{Min: r.BackoffMin, Max: r.BackoffMax, Jitter: t.h.Jitter}.Delay(n)
}
