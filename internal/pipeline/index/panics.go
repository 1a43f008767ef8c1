package index

import (
	"context"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// panicAttempts is how many unanswered claims a document needs before a panic of the sink's
// client counts as its fault. From the fourth on, the document is alone in its request.
const panicAttempts = 6

// apart builds a document, or a part of one. A panic affects only this document: no request is
// made for it, and after MaxRefusals tries it becomes a dead letter.
func (t *turn) apart(d *document, f func() error) (err error) {
	if p := t.catch("make the document", d.id, func() { err = f() }); p != nil {
		d.body, d.reference = nil, nil
		d.fault, d.faultFor = "make the document: "+p.Error(), deadletter.Panic
		return nil
	}
	return err
}

// suspect records the documents whose last request ended in a panic of the sink's client. The
// outcome is unknown, so each is tried again after its lease has expired, alone in its request.
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

// bury ends versions on which the sink's client panicked again and again while they were alone
// in their request: first the dead letter, then PARK (ADR 0021). PARK needs an expired lease. It
// leaves `claimed` unchanged: the version may be in the sink, so nothing older is written. bury
// returns the other claims.
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
	mark, row, err := t.rows().Park(ctx, d.id, e.Key, t.config.Expires(t.clock.Now()), d.row,
		func(tr shard.Transition) { t.note(t.about(d, e, journal.RowRefused, tr.String())) })
	t.lost("PARK", d.id, err)
	return func() {
		if !mark.Done() {
			t.wait(d, t.now().Add(t.delay(t.state.Turn)), "its row is not parked")
			return
		}
		d.row = row
		t.buried(d, e, id, string(deadletter.Panic)+": "+detail)
	}
}
