package receive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
)

// laterEvent is an event that is not due within the quiet window.
type laterEvent struct {
	p   pending
	err error // why it was not stored
}

// maxLater is how many events of one message may be scheduled, because each needs a copy of the
// message.
const maxLater = 10

// putAside marks the event to be scheduled.
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

// store stores what must be safe before hold: scheduled events, and the dead letters of messages
// with other events that are scheduled or held. It has a part of the invocation's time. hold
// leaves out the messages that failed here. Otherwise index would delete a message with an event
// that is stored nowhere.
func (b *batch) store(ctx context.Context) {
	ctx, cancel := b.until(ctx, storeShare)
	defer cancel()
	// A dead letter is stored once, however often it is sent. A scheduled copy is one more each
	// time, so copies come last.
	b.pack()
	b.sendLetters(ctx, true)
	b.schedule(ctx)
}

// schedule stores events that are not due soon: as copies in the queue itself, all in one call,
// or as items, in parallel. An event is done when its own copy or item was confirmed. A message
// that has failed makes no copies, because it would make more at each receive.
func (b *batch) schedule(ctx context.Context) {
	b.later = slices.DeleteFunc(b.later, func(l laterEvent) bool { return b.state[l.p.msg].failed })
	// First the events that the queue can keep. item handles those that delay marks
	// queue.ErrTooLarge.
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

// delay sends copies of events that the queue itself can keep for so long. SQS is exact to the
// second, while prune runs only every few minutes. The other events get queue.ErrTooLarge: they
// are too far ahead, or have no room for the attribute that makes a copy no newer than its
// original.
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

// attributes returns the attributes of the copy that waits for the event. If the message has
// several events, the copy names its one. The other events are done or have their own copies. If
// each copy stood for all events, each would make copies of the others.
func (b *batch) attributes(p *pending) map[string]queue.Attribute {
	m := &b.msgs[p.msg]
	if b.state[p.msg].events == 1 {
		return m.Attributes
	}
	return queue.With(m.Attributes, queue.AttrEvent, queue.Text(strconv.Itoa(p.Index)))
}

// item stores the events that the queue cannot keep as items.
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
