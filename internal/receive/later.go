package receive

import (
	"context"
	"errors"
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

// schedule stores what is not due for long: as copies in the queue itself, all with one call, or as
// items, beside each other. An event is done once its own copy or item was confirmed. It takes no
// more than a part of the invocation's time: what is due now comes after it.
func (b *batch) schedule(ctx context.Context) {
	if len(b.later) == 0 {
		return
	}
	ctx, cancel := b.until(ctx, scheduleShare)
	defer cancel()
	// First what the queue can keep. store takes what delay leaves with queue.ErrTooLarge.
	b.delay(ctx)
	b.store(ctx)
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
		if o, l.err = deadletter.Copy(m.Body, m.Attributes, m.FirstSent(), ahead); l.err == nil {
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

// store makes items of those that the queue cannot keep.
func (b *batch) store(ctx context.Context) {
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
			FirstSent: m.FirstSent(), MessageID: m.ID, Body: m.Body, Attributes: m.Attributes,
		})
	})
}
