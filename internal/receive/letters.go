package receive

import (
	"context"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// outLetter is a dead letter on its way.
type outLetter struct {
	p      pending
	reason deadletter.Reason
	detail string
	id     string
}

// letter notes that the event becomes a dead letter; sendLetters sends it. The dead letters of a
// batch are sent together, after every event is judged.
func (b *batch) letter(p *pending, reason deadletter.Reason, detail string) {
	b.letters = append(b.letters, outLetter{p: *p, reason: reason, detail: detail})
}

// sendLetters stores the dead letters. An event is done once its dead letter is in the dead-letter
// queue; where that fails the message stays.
func (b *batch) sendLetters(ctx context.Context) {
	if len(b.letters) == 0 {
		return
	}
	// An operator chose this: the dead letter is logged, counted Dropped and deleted (design
	// section 9).
	if b.h.Config.DeadLetters == config.DeadLettersNone {
		for i := range b.letters {
			b.endLetter(ctx, &b.letters[i], journal.Dropped)
		}
		return
	}
	var out []queue.Outgoing
	var sent []*outLetter
	for i := range b.letters {
		l := &b.letters[i]
		dead := deadletter.New(b.msgs[l.p.msg], l.reason, l.detail, l.p.Doc, l.p.Key, l.p.Index, b.start)
		l.id = dead.ID
		dead.Sink, dead.Lane = b.h.Sink, string(b.h.Lane)
		o, err := dead.Message()
		if err != nil {
			b.fail(&l.p, "pack the dead letter: "+err.Error())
			continue
		}
		out, sent = append(out, o), append(sent, l)
	}
	errs := b.h.Dead.Send(ctx, out)
	for i, l := range sent {
		if err := queue.ErrorAt(errs, i); err != nil {
			b.fail(&l.p, "send the dead letter: "+err.Error())
			continue
		}
		b.endLetter(ctx, l, journal.DeadLettered)
	}
}

// endLetter ends an event that is sent, or that nobody wants, as a dead letter.
func (b *batch) endLetter(ctx context.Context, l *outLetter, step journal.Step) {
	// PARK comes after the dead letter is stored. After a crash in between, the message is judged
	// again.
	if parks(l.reason) && !b.park(ctx, l) {
		return
	}
	b.state[l.p.msg].open--
	n := b.about(&l.p, step, string(l.reason)+": "+l.detail)
	n.Letter = l.id
	b.h.note(n)
}

// parks says which dead letters are followed by PARK: those of versions that may be pending, which
// nobody would end otherwise (docs/model.md, aged-while-pending).
func parks(r deadletter.Reason) bool { return r == deadletter.DeadDeadline || r == deadletter.TooOld }

// park marks the version dead after its dead letter is stored, and reports whether the message may
// go. Where somebody holds the lease the message stays, to be judged when the lease has ended.
func (b *batch) park(ctx context.Context, l *outLetter) bool {
	// PARK takes its form from the newest image in hand: one call in the common case (design
	// section 5).
	after := &b.docs[l.p.doc].after
	mark, row, err := b.rows().Park(ctx, l.p.Doc, l.p.Key, b.h.Config.Expires(b.start), *after,
		func(t shard.Transition) { b.h.note(b.about(&l.p, journal.RowRefused, t.String())) })
	*after = row
	switch {
	case err != nil:
		b.fail(&l.p, "PARK: "+err.Error())
	case mark == shard.MarkForeign:
		b.h.note(b.about(&l.p, journal.Schema, "row"))
		b.fail(&l.p, "PARK: the row has a newer schema")
	case mark == shard.MarkLeased:
		b.fail(&l.p, "PARK: leased")
	case mark == shard.MarkAgain:
		b.fail(&l.p, "PARK: the row keeps changing")
	}
	return mark.Done()
}
