// SPDX-License-Identifier: Apache-2.0

package redrive_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
)

// A lease is valid until its end, including the last moment.
func TestNothingIsCancelledInTheLastMomentOfALease(t *testing.T) {
	play(t, func(b *bench) {
		m := message(put("1", 3))
		b.hold(m)
		b.Claim(b.Event(m))
		time.Sleep(13 * time.Second)
		if _, err := b.service.Cancel(b.Context(), "content#1", "ann"); !errors.Is(err, redrive.ErrWriting) {
			b.Errorf("got %v, want ErrWriting", err)
		}
		b.Noted(journal.DeadLettered, 0)
	})
}

// prune has sent the event, but has not removed it from the schedule yet.
func TestAScheduledEventThatIsPendingIsCancelled(t *testing.T) {
	play(t, func(b *bench) {
		it := b.plan(3)
		b.Admit(b.EventOf(it.Body))
		if f, err := b.service.CancelScheduled(b.Context(), it.Doc, "ann"); err != nil || f.Key != it.Key {
			b.Errorf("got %+v, %v, want the event cancelled", f, err)
		}
		if r := b.Row(it.Doc); r.Dead != it.Key || r.Pending != "" {
			b.Errorf("row %+v, want the version dead", r)
		}
	})
}

// A message that arrived through both lanes is two messages. Each of them is sent to its own lane.
func TestDeadLettersOfTwoLanesDoNotGoTogether(t *testing.T) {
	play(t, func(b *bench) {
		m := message("one message")
		for id, lane := range map[string]string{"1": "live", "2": "bulk"} {
			e := b.EventOf(put(id, 1))
			l := deadletter.New(m, deadletter.RejectedBySink, "", e.Doc, e.Key, e.Index, time.Now())
			l.Sink, l.Lane, l.Hash = "search", lane, deadletter.Hash(m.Body, m.Attributes)
			usecasetest.Must(b.Letters.Park(b.Context(), l))(b)
		}
		tally, err := b.redriveAll(redrive.Order{})
		if err != nil || tally[redrive.Sent] != 2 {
			b.Errorf("got %v, %v, want both sent", tally, err)
		}
		b.sent(b.live, 1)
		b.sent(b.bulk, 1)
	})
}
