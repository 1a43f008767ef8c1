// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
)

// laterEvent is an event that is not due within the quiet window.
type laterEvent struct {
	p   pending
	err error // why the event was not stored
}

// scheduler stores events that are not due soon: as copies in the queue itself, all in one call, or
// as scheduled items, in parallel.
type scheduler struct {
	*invocation
	ingest   queue.Queue
	schedule schedule.Store
}

// store stores the events that are not due soon. It runs before hold, and has a part of the
// invocation's time. An event is done when its own copy or item was confirmed. A message that has
// failed makes no copies, because it would make more at each receive. A dead letter is stored once,
// however often it is sent. But each scheduled copy is another message, so the copies are sent
// after the dead letters.
func (s scheduler) store(ctx context.Context, later []laterEvent) {
	ctx, cancel := s.until(ctx, storeShare)
	defer cancel()
	later = slices.DeleteFunc(later, func(l laterEvent) bool { return l.p.msg.failed })
	// First store the events that the queue can keep. Then item stores the events that delay marks
	// with queue.ErrTooLarge.
	s.delay(ctx, later)
	s.item(ctx, later)
	for i := range later {
		l := &later[i]
		if l.err != nil {
			s.fail(&l.p, "store the scheduled event: "+l.err.Error())
			continue
		}
		n := l.p.about(journal.Scheduled, "")
		n.Until = l.p.NotBefore
		s.complete(&l.p, n)
	}
}

// delay sends copies of the events that the queue itself can keep until they are due. SQS is exact
// to the second, while prune runs only every few minutes. An event that is due too late gets
// queue.ErrTooLarge. An event whose message has no room for the attribute AttrFirstSent also gets
// this error: without the attribute, the copy would look newer than its original.
func (s scheduler) delay(ctx context.Context, later []laterEvent) {
	var out []queue.Outgoing
	var sent []*laterEvent
	now := s.clock.Now() // loading of bodies may have taken a while
	for i := range later {
		l := &later[i]
		ahead := l.p.NotBefore.Sub(now)
		if l.err = queue.ErrTooLarge; ahead > queue.MaxDelay-time.Second {
			continue
		}
		var o queue.Outgoing
		if o, l.err = deadletter.Copy(l.p.msg.Body, l.p.copied(), l.p.msg.FirstSent(), ahead); l.err == nil {
			out, sent = append(out, o), append(sent, l)
		}
	}
	if len(out) == 0 {
		return
	}
	errs := s.ingest.Send(ctx, out)
	for i, l := range sent {
		l.err = queue.ErrorAt(errs, i)
	}
}

// item stores the events that the queue cannot keep. Each becomes a scheduled item.
func (s scheduler) item(ctx context.Context, later []laterEvent) {
	var far []*laterEvent
	for i := range later {
		if l := &later[i]; errors.Is(l.err, queue.ErrTooLarge) {
			far = append(far, l)
		}
	}
	s.parallel.Each(maxParallel, len(far), func(i int) {
		p, m := &far[i].p, far[i].p.msg
		far[i].err = s.schedule.Put(ctx, schedule.Item{
			ID: deadletter.ID(p.Doc, p.Key, ""), Doc: p.Doc, Key: p.Key, NotBefore: p.NotBefore, Sink: s.sink,
			Lane: s.lane, FirstSent: m.FirstSent(), MessageID: m.ID, Body: m.Body, Attributes: p.copied(),
		})
	})
}
