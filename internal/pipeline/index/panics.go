package index

import (
	"context"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// panicAttempts is how many claims without an answer a document has had before a panic of the
// sink's client is its own fault. From the fourth on it is alone in its request.
const panicAttempts = 6

// catch notes a panic and returns it. Neither its class nor its stack holds content.
func (t *turn) catch(doing string, doc shard.DocID, f func()) *fanout.Panic {
	p := fanout.Catch(f)
	if p != nil {
		t.note(journal.Note{Step: journal.Panicked, Doc: doc, Detail: doing + ": " + p.Error(), Stack: string(p.Stack)})
	}
	return p
}

// apart makes a document, or a part of one. A panic concerns this one alone: no request is made for
// it, and it becomes a dead letter once it has had as many tries as refusals are borne.
func (t *turn) apart(d *document, f func() error) (err error) {
	if p := t.catch("make the document", d.id, func() { err = f() }); p != nil {
		d.body, d.reference = nil, nil
		d.fault, d.faultFor = "make the document: "+p.Error(), deadletter.Panic
		return nil
	}
	return err
}

// ping asks whether the sink is there. A panic of its client is an answer that never came.
func (t *turn) ping(ctx context.Context) (err error) {
	if p := t.catch("ping the sink", "", func() { err = t.h.Sink.Ping(ctx) }); p != nil {
		return p
	}
	return err
}

// suspect remembers whose last request ended in a panic of the sink's client. Each goes alone the
// next time, after its lease has run out: the outcome is unknown.
func (t *turn) suspect(docs []*document, panicked bool) {
	set := t.state.Panicked.Clone()
	for _, d := range docs {
		if e := d.newest(); panicked {
			set.Put(e.item)
		} else {
			set.Drop(e.item)
		}
	}
	t.state.Panicked = set
}

// bury ends the versions on which the sink's client has panicked alone, time after time: the dead
// letter, then PARK (ADR 0021). PARK needs a lease that has run out, and leaves `claimed` as it is:
// the version may be in the sink, so nothing older is written. It returns the other claims.
func (t *turn) bury(ctx context.Context, claims []*document) []*document {
	dead, others := split(claims, func(d *document) bool {
		e := d.newest()
		return t.state.Panicked.Has(e.item) && d.row.Claimed == e.Key && d.row.Attempts >= panicAttempts
	})
	t.finishAll(len(dead), func(i int) func() { return t.buryOne(ctx, dead[i]) })
	return others
}

func (t *turn) buryOne(ctx context.Context, d *document) func() {
	e := d.newest()
	const detail = "the sink's client panics on this document"
	id, err := t.sendLetter(ctx, d, e, deadletter.Panic, detail)
	if t.lost("send the dead letter", d.id, err) {
		return func() { t.wait(d, t.now().Add(t.delay(t.state.Turn)), "its dead letter was not sent") }
	}
	mark, row, err := t.rows().Park(ctx, d.id, e.Key, t.h.Config.Expires(t.h.Clock.Now()), d.row,
		func(tr shard.Transition) { t.note(t.about(d, e, journal.RowRefused, tr.String())) })
	t.lost("PARK", d.id, err)
	return func() {
		if !mark.Done() {
			t.wait(d, t.now().Add(t.delay(t.state.Turn)), "its row is not parked")
			return
		}
		d.row, d.known = row, true
		t.buried(d, e, id, string(deadletter.Panic)+": "+detail)
	}
}
