// SPDX-License-Identifier: Apache-2.0

package prune_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
)

func TestScheduledEventIsEnqueuedToTheSecondAndNeverEarly(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{
		-time.Hour, 0, time.Millisecond, 59*time.Second + 999*time.Millisecond, 15 * time.Minute,
		15*time.Minute + time.Millisecond, 3*time.Hour + 333*time.Millisecond,
	} {
		t.Run(ahead.String(), func(t *testing.T) {
			play(t, func(b *bench) {
				first := time.Now()
				due := time.Now().Add(ahead)
				b.schedules("1", due, flight.Live)
				b.run()
				for b.schedule.Len() > 0 {
					b.next()
				}
				ms, err := b.live.Receive(b.Context(), 1, 20*time.Minute)
				if err != nil || len(ms) != 1 {
					b.Fatalf("received %d messages, error %v", len(ms), err)
				}
				m := ms[0]
				if late := time.Since(due); ahead > 0 && (late < 0 || late >= time.Second) {
					b.Errorf("the event arrived %s after its time, want less than a second", late)
				}
				if m.Body != "body of 1" || m.Attributes["x"].String != "y" {
					b.Errorf("message %q %v is not the original", m.Body, m.Attributes)
				}
				if got := m.FirstSent(); !got.Equal(first.Truncate(time.Millisecond)) {
					b.Errorf("first sent %s, want %s", got, first)
				}
				if n := b.Notes.Of(journal.Enqueued); len(n) != 1 || !n[0].Until.Equal(due) {
					b.Errorf("notes %+v", n)
				}
			})
		})
	}
}

func TestScheduledEventIsDeletedOnlyAfterItsSendSucceeded(t *testing.T) {
	t.Parallel()
	type row struct {
		verdict func(op fault.Op) fault.Verdict
		left    int // number of items after the run
		sent    int // number of messages after the run
	}
	usecasetest.Table(t, play, map[string]row{
		"send fails": {func(op fault.Op) fault.Verdict { return at(op, "SendMessageBatch", fault.FailBefore) }, 1, 0},
		"answer of the send is lost": {func(op fault.Op) fault.Verdict {
			return at(op, "SendMessageBatch", fault.FailAfter)
		}, 1, 1},
		"killed between send and delete": {func(op fault.Op) fault.Verdict {
			return at(op, "SendMessageBatch", fault.CrashAfter)
		}, 1, 1},
		"delete fails":  {func(op fault.Op) fault.Verdict { return at(op, "DeleteScheduled", fault.FailBefore) }, 1, 1},
		"nothing fails": {func(fault.Op) fault.Verdict { return fault.OK }, 0, 1},
	}, func(b *bench, tt row) {
		b.schedules("1", time.Now(), flight.Live)
		met := false
		p, _ := b.faulty(decide(func(op fault.Op) fault.Verdict {
			v := tt.verdict(op)
			met = met || v != fault.OK
			return v
		}))
		_, err := p.Run(b.Context())
		if want := tt.left > 0; (err != nil) != want || met != want {
			b.Errorf("error %v, call failed %t; want both %t", err, met, want)
		}
		if got := b.schedule.Len(); got != tt.left {
			b.Errorf("%d items are left, want %d", got, tt.left)
		}
		if got := b.live.Counts().Total(); got != tt.sent {
			b.Errorf("%d messages, want %d", got, tt.sent)
		}
		time.Sleep(time.Minute)
		b.next()
		if b.schedule.Len() != 0 || b.live.Counts().Total() == 0 {
			b.Error("the next run did not recover the event")
		}
	})
}

func at(op fault.Op, call string, v fault.Verdict) fault.Verdict {
	if op.Call == call {
		return v
	}
	return fault.OK
}

func TestScheduledEventsGoToTheirOwnQueues(t *testing.T) {
	play(t, func(b *bench) {
		b.Config.Sinks["other"] = config.Sink{Kind: "memory"}
		for i := range 120 {
			b.schedules(fmt.Sprint("b", i), time.Now(), flight.Bulk)
		}
		b.schedules("l", time.Now(), flight.Live)
		for _, sink := range []string{"other", "gone"} {
			err := b.schedule.Put(b.Context(), schedule.Item{
				ID: sink, Doc: doc(sink), Key: b.key(1),
				NotBefore: time.Now(), Sink: sink, FirstSent: time.Now(), Body: "x",
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		rep := b.run()
		if live, bulk := b.live.Counts().Total(), b.bulk.Counts().Total(); live != 2 || bulk != 120 ||
			rep.Schedule.Sent != 122 {
			b.Errorf("%d live, %d bulk, %+v; want 2 (one of a sink that is no longer configured) and 120", live, bulk,
				rep.Schedule)
		}
		if got := b.schedule.Len(); got != 1 {
			b.Errorf("%d items are left, want the item of the other sink", got)
		}
	})
}

func TestScheduledEventThatNoQueueTakesBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	for _, policy := range []config.DeadLetters{config.DeadLettersQueue, config.DeadLettersNone} {
		synctest.Test(t, func(t *testing.T) {
			b := setup(t)
			b.Config.DeadLetters = policy
			attrs := map[string]queue.Attribute{}
			for i := range queue.MaxEntries {
				attrs[fmt.Sprint("a", i)] = queue.Text("x")
			}
			err := b.schedule.Put(t.Context(), schedule.Item{
				ID: "1", Doc: doc(1), Key: b.key(1), NotBefore: time.Now(), Sink: "search", FirstSent: time.Now(),
				Body: "x", Attributes: attrs,
			})
			if err != nil {
				t.Fatal(err)
			}
			rep := b.run()
			if rep.Schedule.Parked != 1 || b.schedule.Len() != 0 || b.live.Counts().Total() != 0 {
				t.Errorf("report %+v, %d items are left, want none", rep.Schedule, b.schedule.Len())
			}
			kept, dropped := len(b.Notes.Of(journal.Parked)), len(b.Notes.Of(journal.Dropped))
			if policy == config.DeadLettersQueue && (kept != 1 || dropped != 0) || policy == config.DeadLettersNone &&
				(kept != 0 || dropped != 1) {
				t.Errorf("deadLetters %s: %d are parked and %d dropped, which is wrong", policy, kept, dropped)
			}
		})
	}
}

// illegible is a store that cannot read the messages of some items.
type illegible struct {
	schedule.Store
	ids map[string]bool
}

func (u illegible) Due(ctx context.Context, until time.Time, cursor string, limit int) ([]schedule.Item, string,
	error,
) {
	items, next, err := u.Store.Due(ctx, until, cursor, limit)
	for i := range items {
		if u.ids[items[i].ID] {
			items[i].Body, items[i].Attributes, items[i].Unread = "", nil, errors.New("its message is gone")
		}
	}
	return items, next, err
}

func TestAScheduledEventThatCannotBeReadHoldsNoOtherBack(t *testing.T) {
	play(t, func(b *bench) {
		for i := range 3 {
			b.schedules(fmt.Sprint(i), time.Now(), flight.Live)
		}
		p, _ := b.faulty(decide(func(fault.Op) fault.Verdict { return fault.OK }))
		items, _, err := b.schedule.List(b.Context(), "", "", 1)
		if err != nil || len(items) != 1 {
			b.Fatalf("%d items, %v", len(items), err)
		}
		p.Schedule = illegible{p.Schedule, map[string]bool{items[0].ID: true}}
		rep, err := p.Run(b.Context())
		if err == nil || !strings.Contains(err.Error(), string(items[0].Doc)+": its message is gone") {
			b.Errorf("error %v, want one that names %s", err, items[0].Doc)
		}
		if s := rep.Schedule; s.Sent != 2 || s.Failed != 1 || b.schedule.Len() != 1 {
			b.Errorf("report %+v, %d items are left; want two sent and one left", s, b.schedule.Len())
		}
	})
}
