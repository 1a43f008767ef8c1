// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
)

// ScheduleReport counts scheduled events.
type ScheduleReport struct {
	Due    int // events that are due within SQS's longest delay
	Sent   int
	Parked int // events that could never be sent, so they were parked as dead letters
	Failed int // events that remain until the next run
}

// schedulePage is the number of events, with their bodies, that are loaded at a time.
const schedulePage = 50

// schedule enqueues the events that are due within SQS's longest delay.
func (r *run) schedule(ctx context.Context) error {
	rep := &r.report.Schedule
	failed := failures{count: &rep.Failed}
	for cursor := ""; rep.Due < r.budget.Events; {
		items, next, err := page(ctx, r.Pruner, func() ([]schedule.Item, string, error) {
			return r.Schedule.Due(ctx, r.Clock.Now().Add(queue.MaxDelay), cursor, schedulePage)
		})
		if err != nil {
			return err
		}
		// An item that fails stays in the store, and the next run finds it again.
		r.enqueue(ctx, items, &failed)
		if cursor = next; cursor == "" {
			break
		}
	}
	return failed.segmentError(rep.Due)
}

// enqueue sends a page of events, each to its lane, and deletes the events that were sent. After a
// crash in between, the events are sent again, and their rows recognise the duplicates.
func (r *run) enqueue(ctx context.Context, items []schedule.Item, failed *failures) {
	rep := &r.report.Schedule
	var done []schedule.Item
	out := map[flight.Lane][]queue.Outgoing{}
	sent := map[flight.Lane][]schedule.Item{}
	for _, it := range items {
		// Each sink has a pruner, which handles the scheduled events of that sink.
		if !r.mine(it.Sink, it.Doc) {
			continue
		}
		rep.Due++
		if it.Unread != nil {
			failed.add(fmt.Errorf("read the scheduled event of %s: %w", it.Doc, it.Unread))
			continue
		}
		o, err := deadletter.Copy(it.Body, it.Attributes, it.FirstSent, 0)
		// The body leaves too little room for the attribute lull-first-sent, which every copy must
		// have (design section 13).
		if errors.Is(err, queue.ErrTooLarge) {
			if err = r.parkItem(ctx, it, err); err == nil {
				rep.Parked++
				done = append(done, it)
				continue
			}
		}
		if err != nil {
			failed.add(err)
			continue
		}
		// SQS delays the event until it is due, because prune runs only every few minutes.
		o.Delay = r.delay(it)
		lane := flight.Live
		if it.Lane == flight.Bulk {
			lane = flight.Bulk
		}
		out[lane], sent[lane] = append(out[lane], o), append(sent[lane], it)
	}
	// The live lane goes first (design section 1).
	for _, lane := range []flight.Lane{flight.Live, flight.Bulk} {
		if len(out[lane]) == 0 {
			continue
		}
		errs := r.queue(lane).Send(ctx, out[lane])
		for i, it := range sent[lane] {
			if err := queue.ErrorAt(errs, i); err != nil {
				failed.add(fmt.Errorf("send the event of %s: %w", it.Doc, err))
				continue
			}
			rep.Sent++
			done = append(done, it)
			r.note(journal.Note{
				Step: journal.Enqueued, Doc: it.Doc, Key: it.Key, Lane: string(it.Lane), Message: it.MessageID,
				Sent: it.FirstSent, Until: it.NotBefore,
			})
		}
	}
	// The deletion comes after the sends. If the deletion fails, the event is sent again and judged
	// by its version.
	failed.keep(r.forget(ctx, done))
}

// delay returns how long SQS delays the event, in whole seconds. The delay is rounded up, so the
// event is never early, and less than a second late.
func (r *run) delay(it schedule.Item) time.Duration {
	return min(max(queue.WholeSeconds(it.NotBefore.Sub(r.Clock.Now())), 0), queue.MaxDelay)
}

// forget deletes items that were sent or parked.
func (r *run) forget(ctx context.Context, items []schedule.Item) error {
	return r.Parallel.Try(maxParallel, len(items), func(i int) error {
		it := items[i]
		err := r.try(ctx, func() error { return r.Schedule.Delete(ctx, it.ID) })
		if err != nil {
			return fmt.Errorf("delete the event of %s, which was sent: %w", it.Doc, err)
		}
		return nil
	})
}

// parkItem makes a dead letter of an event that no queue can ever accept.
func (r *run) parkItem(ctx context.Context, it schedule.Item, why error) error {
	// The body and the attributes are unchanged, so that the dead letter can be redriven.
	m := queue.Message{ID: it.MessageID, Body: it.Body, Attributes: it.Attributes, Sent: it.FirstSent}
	l := deadletter.New(m, deadletter.Contract, "scheduled: "+why.Error(), it.Doc, it.Key, 0, r.Clock.Now())
	l.Sink, l.Lane = r.Sink, string(it.Lane)
	n := journal.Note{
		Step: journal.Dropped, Doc: it.Doc, Key: it.Key, Message: it.MessageID, Sent: it.FirstSent,
		Detail: string(l.Reason) + ": " + l.Detail,
	}
	if r.Config.DeadLetters != config.DeadLettersNone {
		park := func() (deadletter.Parking, error) { return r.Letters.Park(ctx, l) }
		if _, err := backoff.Get(ctx, r.Clock, park); err != nil {
			return fmt.Errorf("park the event of %s: %w", it.Doc, err)
		}
		n.Step, n.Letter = journal.Parked, l.ID
	}
	r.note(n)
	return nil
}
