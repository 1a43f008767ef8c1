package receive

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Bounds of the dead letters of one invocation. Each dead letter contains the body of its
// message, so a small message with many invalid events could become hundreds of megabytes.
const (
	// maxAlike is how many events of one message may have their own dead letters for one reason.
	// If there are more, they share one dead letter.
	maxAlike = 10
	// maxLetterBytes is how much is sent before hold, and again after it. A batch has 6 MB at
	// most, so the first dead letter of each of its messages fits.
	maxLetterBytes = 8 << 20
)

// fault is an event that becomes a dead letter.
type fault struct {
	p      pending
	reason deadletter.Reason
	detail string
}

// outLetter is a dead letter to be sent: for one event, or for all events of a message with the
// same fault.
type outLetter struct {
	faults []fault
	id     string
	begun  bool
	mark   shard.Mark // the result of PARK, if one follows
	err    error
}

func (l *outLetter) first() *fault { return &l.faults[0] }

// letter marks the event to become a dead letter. The dead letters of a batch are sent together,
// after every event is judged.
func (b *batch) letter(p *pending, reason deadletter.Reason, detail string) {
	b.faults = append(b.faults, fault{p: *p, reason: reason, detail: detail})
}

// pack makes the dead letters: one for each version, and one for each message and reason if the
// versions are unknown or more than maxAlike. It orders them by turns over the messages, so that
// a message with many faults does not block the others.
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
		// PARK marks each version as dead, and only a dead letter that names the version can
		// remove that mark. A marked version is not a fault at the next receive, so each receive
		// gets further.
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

// sendLetters sends dead letters. If others is true, it sends those of messages with other
// events that are scheduled or held, otherwise all remaining ones. An event is done when its
// dead letter is in the dead-letter queue. If that fails, or the invocation has sent as much as
// it may, the message stays.
func (b *batch) sendLetters(ctx context.Context, others bool) {
	var mine []*outLetter
	for _, l := range b.letters {
		s := &b.state[l.first().p.msg]
		if !l.begun && (!others || s.held || s.later > 0) {
			l.begun = true
			mine = append(mine, l)
		}
	}
	// An operator chose this setting: the dead letter is logged, counted as Dropped, and deleted
	// (design section 9).
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

// message builds the dead letter. If it is for several events, it has no document and no key,
// because it is about the whole message.
func (b *batch) message(l *outLetter) (queue.Outgoing, error) {
	f := l.first()
	doc, key, detail := f.p.Doc, f.p.Key, f.detail
	if n := len(l.faults); n > 1 {
		doc, key, detail = "", "", fmt.Sprintf("%d events of the message, the first: %s", n, f.detail)
	}
	s := &b.state[f.p.msg]
	if s.maker == nil { // shared by the message's dead letters, to hash the body once
		s.maker = deadletter.Of(b.msgs[f.p.msg])
	}
	dead := s.maker.New(f.reason, detail, doc, key, f.p.Index, b.start)
	l.id = dead.ID
	dead.Sink, dead.Lane = b.h.Sink, string(b.h.Lane)
	return dead.Message()
}

// endLetters completes the events whose dead letters were sent, or dropped by the settings.
func (b *batch) endLetters(ctx context.Context, letters []*outLetter, step journal.Step) {
	// PARK comes after the dead letter is stored. After a crash in between, the message is
	// judged again.
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

// parks reports whether PARK follows a dead letter of this reason. It does for versions that may
// be pending, because nothing else would end them (docs/model.md, aged-while-pending).
func parks(r deadletter.Reason) bool {
	return r == deadletter.DeadDeadline || r == deadletter.TooOld || r == deadletter.StaleSource
}

// park marks versions dead after their dead letters are stored, document by document. Each PARK
// takes its form from the newest image of the row, which the one before it returned (design
// section 5).
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

// parked reports whether PARK is done, so that the message may be deleted. If another flight
// holds the lease, the message stays and is judged again later.
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
