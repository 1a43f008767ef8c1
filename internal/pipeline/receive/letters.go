package receive

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Bounds of the dead letters of one invocation. Each holds the body of its message: without them a
// small message of many faulty events becomes hundreds of megabytes.
const (
	// maxAlike is how many events of one message become dead letters of their own for one reason.
	// More of them become one dead letter together.
	maxAlike = 10
	// maxLetterBytes is how much is sent before hold, and once more after it. A batch of the mapping
	// has 6 MB at most, so that the first dead letter of each of its messages fits.
	maxLetterBytes = 8 << 20
)

// fault is an event that becomes a dead letter.
type fault struct {
	p      pending
	reason deadletter.Reason
	detail string
}

// outLetter is a dead letter on its way: of one event, or of all events of a message that have one
// fault.
type outLetter struct {
	faults []fault
	id     string
	begun  bool
	mark   shard.Mark // what became of PARK, where one follows
	err    error
}

func (l *outLetter) first() *fault { return &l.faults[0] }

// letter notes that the event becomes a dead letter; sendLetters sends it. The dead letters of a
// batch are sent together, after every event is judged.
func (b *batch) letter(p *pending, reason deadletter.Reason, detail string) {
	b.faults = append(b.faults, fault{p: *p, reason: reason, detail: detail})
}

// pack makes the dead letters of the faults: one for each version, and one for each message and
// reason where the versions are unknown or more than maxAlike. They come by turns, message by
// message: one with many faults must not keep the dead letters of the others back.
func (b *batch) pack() {
	type alike struct {
		msg    int
		reason deadletter.Reason
	}
	count, together := make(map[alike]int), make(map[alike]*outLetter)
	for i := range b.faults {
		count[alike{b.faults[i].p.msg, b.faults[i].reason}]++
	}
	for _, f := range b.faults {
		a := alike{f.p.msg, f.reason}
		l := together[a]
		// PARK marks each version, and only a dead letter that names the version takes that mark away
		// again. What is marked is not a fault at the next receive: each receive comes further.
		alone := parks(f.reason) || f.p.Key != "" && count[a] <= maxAlike
		if alone || l == nil {
			l = &outLetter{}
			b.letters = append(b.letters, l)
		}
		if !alone {
			together[a] = l
		}
		l.faults = append(l.faults, f)
	}
	fanout.ByTurns(b.letters, func(l *outLetter) int { return l.first().p.msg })
}

// sendLetters stores dead letters: those of messages with other events that wait or are held, or
// all that are left. An event is done once its dead letter is in the dead-letter queue. Where that
// fails, or the invocation has sent as much as it may, the message stays.
func (b *batch) sendLetters(ctx context.Context, others bool) {
	var mine []*outLetter
	for _, l := range b.letters {
		s := &b.state[l.first().p.msg]
		if !l.begun && (!others || s.held || s.later > 0) {
			l.begun = true
			mine = append(mine, l)
		}
	}
	// An operator chose this: the dead letter is logged, counted Dropped and deleted (design
	// section 9).
	if b.h.Config.DeadLetters == config.DeadLettersNone {
		b.endLetters(ctx, mine, journal.Dropped)
		return
	}
	var out []queue.Outgoing
	var sent []*outLetter
	bytes := 0
	for _, l := range mine {
		m := &b.msgs[l.first().p.msg]
		if bytes += queue.Bytes(m.Body, m.Attributes); bytes > maxLetterBytes {
			b.fail(&l.first().p, "this invocation has sent as many dead letters as it may")
			continue
		}
		o, err := b.message(l)
		if err != nil {
			b.fail(&l.first().p, "pack the dead letter: "+err.Error())
			continue
		}
		out, sent = append(out, o), append(sent, l)
	}
	if len(out) == 0 {
		return
	}
	errs := b.h.Dead.Send(ctx, out)
	stored := sent[:0]
	for i, l := range sent {
		if err := queue.ErrorAt(errs, i); err != nil {
			b.fail(&l.first().p, "send the dead letter: "+err.Error())
			continue
		}
		stored = append(stored, l)
	}
	b.endLetters(ctx, stored, journal.DeadLettered)
}

// message packs the dead letter. One of several events has neither document nor key: it stands for
// its message.
func (b *batch) message(l *outLetter) (queue.Outgoing, error) {
	f := l.first()
	doc, key, detail := f.p.Doc, f.p.Key, f.detail
	if n := len(l.faults); n > 1 {
		doc, key, detail = "", "", fmt.Sprintf("%d events of the message, the first: %s", n, f.detail)
	}
	s := &b.state[f.p.msg]
	if s.maker == nil { // one for all of the message's dead letters: it hashes the body once
		s.maker = deadletter.Of(b.msgs[f.p.msg])
	}
	dead := s.maker.New(f.reason, detail, doc, key, f.p.Index, b.start)
	l.id = dead.ID
	dead.Sink, dead.Lane = b.h.Sink, string(b.h.Lane)
	return dead.Message()
}

// endLetters ends events that are sent, or that nobody wants, as dead letters.
func (b *batch) endLetters(ctx context.Context, letters []*outLetter, step journal.Step) {
	// PARK comes after the dead letter is stored. After a crash in between, the message is judged
	// again.
	b.park(ctx, letters)
	for _, l := range letters {
		if parks(l.first().reason) && !b.parked(l) {
			continue
		}
		for i := range l.faults {
			f := &l.faults[i]
			b.state[f.p.msg].open--
			n := b.about(&f.p, step, string(f.reason)+": "+f.detail)
			n.Letter = l.id
			b.h.note(n)
		}
	}
}

// parks says which dead letters are followed by PARK: those of versions that may be pending, which
// nobody would end otherwise (docs/model.md, aged-while-pending).
func parks(r deadletter.Reason) bool {
	return r == deadletter.DeadDeadline || r == deadletter.TooOld || r == deadletter.StaleSource
}

// park marks versions dead after their dead letters are stored, document by document: each PARK
// takes its form from the newest image in hand, which the one before it returned (design section
// 5).
func (b *batch) park(ctx context.Context, letters []*outLetter) {
	byDoc := make(map[int][]*outLetter)
	for _, l := range letters {
		if parks(l.first().reason) {
			byDoc[l.first().p.doc] = append(byDoc[l.first().p.doc], l)
		}
	}
	docs := slices.Sorted(maps.Keys(byDoc))
	b.h.Parallel.Each(maxParallel, len(docs), func(i int) {
		after := &b.docs[docs[i]].after
		for _, l := range byDoc[docs[i]] {
			p := &l.first().p
			l.mark, *after, l.err = b.rows().Park(ctx, p.Doc, p.Key, b.h.Config.Expires(b.start), *after,
				func(t shard.Transition) { b.h.note(b.about(p, journal.RowRefused, t.String())) })
		}
	})
}

// parked reports whether the message may go. Where somebody holds the lease it stays, to be judged
// when the lease has ended.
func (b *batch) parked(l *outLetter) bool {
	p := &l.first().p
	switch {
	case l.err != nil:
		b.fail(p, "PARK: "+l.err.Error())
	case l.mark == shard.MarkForeign:
		b.h.note(b.about(p, journal.Schema, "row"))
		b.fail(p, "PARK: the row has a newer schema")
	case l.mark == shard.MarkLeased:
		b.fail(p, "PARK: leased")
	case l.mark == shard.MarkAgain:
		b.fail(p, "PARK: the row keeps changing")
	}
	return l.mark.Done()
}
