// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
)

// These are bounds of the dead letters of one invocation. Each dead letter contains the body of its
// message, so a small message with many invalid events could become hundreds of megabytes.
const (
	// maxAlike is the number of events of one message that may have their own dead letters for one
	// reason. If there are more such events, they share one dead letter.
	maxAlike = 10
	// maxLetterBytes is the number of bytes that are sent before hold, and again after hold. A
	// batch has at most 6 MB, so the first dead letter of each message fits.
	maxLetterBytes = 8 << 20
)

// outLetter is a dead letter to send: for one event, or for all events of a message with the same
// fault.
type outLetter struct {
	faults []fault
	id     string
	begun  bool
	mark   shard.Mark // the result of PARK, if PARK follows this dead letter
	err    error
}

func (l *outLetter) first() *fault { return &l.faults[0] }

// pack adds the dead letters of new faults to the dead letters that are already packed. Usually
// each version has its own dead letter. If the versions are unknown or more than maxAlike, there is
// one dead letter for each message and reason. pack orders the dead letters in turns over the
// messages, so that a message with many faults does not block the others.
func pack(letters []*outLetter, found faults) []*outLetter {
	type alike struct {
		msg    *message
		reason deadletter.Reason
	}
	count, together := make(map[alike]int), make(map[alike]*outLetter)
	for i := range found {
		count[alike{found[i].p.msg, found[i].reason}]++
	}
	for _, f := range found {
		a := alike{f.p.msg, f.reason}
		l := together[a]
		// PARK marks each version as dead, and only a dead letter that names the version can remove
		// that mark. A marked version is not a fault at the next receive, so each receive completes
		// more of the message.
		alone := needsPark(f.reason) || f.p.Key != "" && count[a] <= maxAlike
		if alone || l == nil {
			l = &outLetter{}
			letters = append(letters, l)
		}
		if !alone {
			together[a] = l
		}
		l.faults = append(l.faults, f)
	}
	fanout.ByTurns(letters, func(l *outLetter) *message { return l.first().p.msg })
	return letters
}

// letterSender sends dead letters. An event is done when its dead letter is in the dead-letter
// queue. If sending fails, or the invocation has sent as many bytes as it may, the message stays in
// the queue.
type letterSender struct {
	*invocation
	table rows.Table
	dead  queue.Queue
}

// urgent sends the dead letters that must be stored before hold. They are the dead letters of
// messages with other events that are scheduled or held. urgent may use a part of the invocation's
// time. If a dead letter could not be sent, hold leaves its message out. Otherwise index would
// delete a message with an event that is stored nowhere.
func (s letterSender) urgent(ctx context.Context, letters []*outLetter) {
	ctx, cancel := s.until(ctx, storeShare)
	defer cancel()
	s.send(ctx, letters, func(m *message) bool { return m.held || m.later > 0 })
}

// rest sends the remaining dead letters.
func (s letterSender) rest(ctx context.Context, letters []*outLetter) {
	s.send(ctx, letters, func(*message) bool { return true })
}

// send sends the dead letters of the messages that the function which selects, each once.
func (s letterSender) send(ctx context.Context, letters []*outLetter, which func(*message) bool) {
	var mine []*outLetter
	for _, l := range letters {
		if !l.begun && which(l.first().p.msg) {
			l.begun = true
			mine = append(mine, l)
		}
	}
	// An operator chose this setting: lull logs the dead letter, counts it as Dropped, and deletes
	// the message (design section 9).
	if s.config.DeadLetters == config.DeadLettersNone {
		s.end(ctx, mine, journal.Dropped)
		return
	}
	var out []queue.Outgoing
	var sent []*outLetter
	bytes := 0
	for _, l := range mine {
		m := l.first().p.msg
		if bytes += queue.Bytes(m.Body, m.Attributes); bytes > maxLetterBytes {
			s.fail(&l.first().p, "this invocation has already sent as many dead letters as it may")
			continue
		}
		o, err := s.message(l)
		if err != nil {
			s.fail(&l.first().p, "pack the dead letter: "+err.Error())
			continue
		}
		out, sent = append(out, o), append(sent, l)
	}
	if len(out) == 0 {
		return
	}
	errs := s.dead.Send(ctx, out)
	stored := sent[:0]
	for i, l := range sent {
		if err := queue.ErrorAt(errs, i); err != nil {
			s.fail(&l.first().p, "send the dead letter: "+err.Error())
			continue
		}
		stored = append(stored, l)
	}
	s.end(ctx, stored, journal.DeadLettered)
}

// message builds the SQS message of a dead letter. A dead letter for several events has no document
// and no key, because it is about the whole message.
func (s letterSender) message(l *outLetter) (queue.Outgoing, error) {
	f := l.first()
	doc, key, detail := f.p.Doc, f.p.Key, f.detail
	if n := len(l.faults); n > 1 {
		doc, key, detail = "", "", fmt.Sprintf("%d events of the message, the first: %s", n, f.detail)
	}
	m := f.p.msg
	if m.maker == nil { // the dead letters of a message share one maker, so that the body is hashed once
		m.maker = deadletter.Of(m.Message)
	}
	dead := m.maker.New(f.reason, detail, doc, key, f.p.Index, s.start)
	l.id = dead.ID
	dead.Sink, dead.Lane = s.sink, string(s.lane)
	return dead.Message()
}

// end completes the events whose dead letters were sent, or were dropped because of the settings.
func (s letterSender) end(ctx context.Context, letters []*outLetter, step journal.Step) {
	// PARK comes after the dead letter is stored. After a crash between the two, the message is
	// judged again.
	s.park(ctx, letters)
	for _, l := range letters {
		if needsPark(l.first().reason) && !s.parked(l) {
			continue
		}
		for i := range l.faults {
			f := &l.faults[i]
			n := f.p.about(step, string(f.reason)+": "+f.detail)
			n.Letter = l.id
			s.complete(&f.p, n)
		}
	}
}

// needsPark reports whether PARK follows a dead letter of this reason. PARK follows if the version
// may be pending, because otherwise it would stay pending (docs/model.md, aged-while-pending).
func needsPark(r deadletter.Reason) bool {
	return r == deadletter.DeadDeadline || r == deadletter.TooOld || r == deadletter.StaleSource
}

// park marks versions dead after their dead letters are stored, document by document. Each PARK
// takes its form from the newest image of the row, which the PARK before it returned (design
// section 5).
func (s letterSender) park(ctx context.Context, letters []*outLetter) {
	byDoc := make(map[*document][]*outLetter)
	for _, l := range letters {
		if needsPark(l.first().reason) {
			byDoc[l.first().p.doc] = append(byDoc[l.first().p.doc], l)
		}
	}
	docs := slices.SortedFunc(maps.Keys(byDoc), func(x, y *document) int { return cmp.Compare(x.place, y.place) })
	s.parallel.Each(maxParallel, len(docs), func(i int) {
		after := &docs[i].after
		for _, l := range byDoc[docs[i]] {
			p := &l.first().p
			l.mark, *after, l.err = s.table.Park(ctx, p.Doc, p.Key, s.config.Lifecycle.Expires(s.start), *after,
				func(t shard.Transition) { s.note(p.about(journal.RowRefused, t.String())) })
		}
	})
}

// parked reports whether PARK is done, so that the message may be deleted. If another flight has
// the lease, the message stays and is judged again later.
func (s letterSender) parked(l *outLetter) bool {
	p := &l.first().p
	switch {
	case l.err != nil:
		s.fail(p, "PARK: "+l.err.Error())
	case l.mark == shard.MarkForeign:
		s.note(p.about(journal.Schema, "row"))
		s.fail(p, "PARK: the row has a newer schema")
	case l.mark == shard.MarkLeased:
		s.fail(p, "PARK: the row is leased")
	case l.mark == shard.MarkAgain:
		s.fail(p, "PARK: the row keeps changing")
	}
	return l.mark.Done()
}
