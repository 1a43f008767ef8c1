package receive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/schedule"
)

// laterEvent is an event that is not due for longer than the quiet window.
type laterEvent struct {
	p   pending
	err error // why it is not stored
}

// maxLater is how many events of one message may wait until later: each takes a copy of it along.
const maxLater = 10

// putAside notes that the event waits until later.
func (b *batch) putAside(p *pending) {
	if s := &b.state[p.msg]; s.later == maxLater {
		b.letter(p, deadletter.Contract, fmt.Sprintf(
			"notbefore: at most %d events of one message may wait until later: send the others in messages of their own",
			maxLater))
		return
	}
	b.state[p.msg].later++
	b.later = append(b.later, laterEvent{p: *p})
}

// store puts away what must be safe before hold, in a part of the invocation's time: scheduled
// events, and the dead letters of messages with other events that wait or are held. hold leaves out
// what failed here: otherwise index would delete a message of which an event is nowhere.
func (b *batch) store(ctx context.Context) {
	ctx, cancel := b.until(ctx, storeShare)
	defer cancel()
	// Dead letters are stored once however often they are sent. A copy is one more each time, so it
	// comes last.
	b.pack()
	b.sendLetters(ctx, true)
	b.schedule(ctx)
}

// schedule stores what is not due for long: as copies in the queue itself, all with one call, or as
// items, beside each other. An event is done once its own copy or item was confirmed. A message
// that comes back makes no copies: it would make more each time.
func (b *batch) schedule(ctx context.Context) {
	b.later = slices.DeleteFunc(b.later, func(l laterEvent) bool { return b.state[l.p.msg].failed })
	// First what the queue can keep. item takes what delay leaves with queue.ErrTooLarge.
	b.delay(ctx)
	b.item(ctx)
	for i := range b.later {
		l := &b.later[i]
		if l.err != nil {
			b.fail(&l.p, "store the scheduled event: "+l.err.Error())
			continue
		}
		b.state[l.p.msg].open--
		n := b.about(&l.p, journal.Scheduled, "")
		n.Until = l.p.NotBefore
		b.h.note(n)
	}
}

// delay sends copies of what the queue itself can keep for that long, to the second: prune comes by
// every few minutes only. For the others the error is queue.ErrTooLarge: too far ahead, or no room
// for the mark that makes a copy no newer than its original.
func (b *batch) delay(ctx context.Context) {
	var out []queue.Outgoing
	var sent []*laterEvent
	now := b.h.Clock.Now() // loading may have taken a while
	for i := range b.later {
		l := &b.later[i]
		ahead := l.p.NotBefore.Sub(now)
		if l.err = queue.ErrTooLarge; ahead > queue.MaxDelay-time.Second {
			continue
		}
		m := &b.msgs[l.p.msg]
		var o queue.Outgoing
		if o, l.err = deadletter.Copy(m.Body, b.attributes(&l.p), m.FirstSent(), ahead); l.err == nil {
			out, sent = append(out, o), append(sent, l)
		}
	}
	if len(out) == 0 {
		return
	}
	errs := b.h.Ingest.Send(ctx, out)
	for i, l := range sent {
		l.err = queue.ErrorAt(errs, i)
	}
}

// attributes are those of the copy that waits for the event. The copy of a message of several
// events says which one it is for. The others are done or have copies of their own: if each copy
// stood for all of them, each would make copies of the others.
func (b *batch) attributes(p *pending) map[string]queue.Attribute {
	m := &b.msgs[p.msg]
	if b.state[p.msg].events == 1 {
		return m.Attributes
	}
	return queue.With(m.Attributes, queue.AttrEvent, queue.Text(strconv.Itoa(p.Index)))
}

// item makes items of those that the queue cannot keep.
func (b *batch) item(ctx context.Context) {
	var far []*laterEvent
	for i := range b.later {
		if l := &b.later[i]; errors.Is(l.err, queue.ErrTooLarge) {
			far = append(far, l)
		}
	}
	b.h.Parallel.Each(maxParallel, len(far), func(i int) {
		p, m := &far[i].p, &b.msgs[far[i].p.msg]
		far[i].err = b.h.Schedule.Put(ctx, schedule.Item{
			ID: deadletter.ID(p.Doc, p.Key, ""), Doc: p.Doc, Key: p.Key, NotBefore: p.NotBefore, Sink: b.h.Sink,
			Lane:      b.h.Lane,
			FirstSent: m.FirstSent(), MessageID: m.ID, Body: m.Body, Attributes: b.attributes(p),
		})
	})
}
