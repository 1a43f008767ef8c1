package index

import (
	"context"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// admit is ADMIT by index (step 1, ADR 0014): a newer version became a dead letter, and the newest
// that this flight holds behind it has its turn. Redelivery would try the versions of a message
// from the top again, and a row remembers one dead version only. It returns the documents to claim.
func (t *turn) admit(ctx context.Context, docs []*document) []*document {
	// Extend, then ADMIT, as design section 8 says. Where the extension is refused, redelivery
	// admits.
	held := t.stillHeld(ctx, docs)
	return each(t, held, func(d *document) answer { return t.admitOne(ctx, d) }, t.admitted)
}

// stillHeld keeps the messages invisible for this turn and the next, and with that asks whether
// they exist: nothing may be pending that no message stands for. A document whose message is not
// ours any more leaves its version to redelivery.
func (t *turn) stillHeld(ctx context.Context, docs []*document) []*document {
	if len(docs) == 0 {
		return nil
	}
	// This turn ends at t.hard at the latest. One more index timeout is for the next turn.
	until := shard.MicrosOf(t.hard.Add(t.h.Config.Index.Timeout))
	receipts := make([]string, len(docs))
	for i, d := range docs {
		receipts[i] = t.message(d.newest()).Receipt
		until = max(until, t.visible(d.newest().record))
	}
	until = min(until, t.longestHold())
	errs := t.hold(ctx, receipts, until)
	var ours []*document
	for i, d := range docs {
		if err := queue.ErrorAt(errs, i); err == nil {
			ours = append(ours, d)
			continue
		}
		t.giveUp(d, d.newest(), "a newer version is dead, and this message is not held any more: redelivery admits it")
		t.waitForOlder(d)
	}
	return ours
}

// admitOne is one ADMIT under this flight's id. For a message older than the age guard, ADMIT also
// asks for a committed version (design section 5).
func (t *turn) admitOne(ctx context.Context, d *document) answer {
	e := d.newest()
	now := t.h.Clock.Now()
	return t.ask(ctx, shard.Admit(shard.Admission{
		Doc: d.id, Key: e.Key, Class: e.Class, Flight: string(t.state.Flight), Now: shard.MicrosOf(now),
		Aged: t.h.Config.Lifecycle.Aged(t.message(e).FirstSent(), now),
	}))
}

// admitted takes in the answer of one ADMIT. A refusal's image decides once more. What it would
// admit again has no place, and leaves.
func (t *turn) admitted(d *document, a answer) (claim bool) {
	e := d.newest()
	if a.unknown() {
		// The row shows whether it was applied. The next turn reads it.
		t.wait(d, t.now().Add(t.delay(t.state.Turn)), "ADMIT got no answer")
		return false
	}
	// Applied or refused, this is the newest image of the row.
	d.row, d.known = a.row, true
	if a.err == nil {
		n := t.about(d, e, journal.Admitted, "behind a dead letter")
		n.Old = a.old
		t.note(n)
	}
	switch t.settle(d, true) {
	case shard.ActClaim:
		return true
	case shard.ActAdmit:
		if d.newest() == e {
			t.giveUp(d, e, "ADMIT refused: redelivery judges it")
		}
		t.waitForOlder(d)
	}
	return false
}
