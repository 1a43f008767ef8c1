// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/journal"
)

// slow makes every call with a name take the given time, or until the caller has no time left.
type slow struct {
	call string
	d    time.Duration
}

func (s slow) Decide(ctx context.Context, _ *fault.Invocation, op fault.Op) fault.Verdict {
	if op.Call != s.call {
		return fault.OK
	}
	select {
	case <-ctx.Done():
		return fault.FailBefore
	case <-time.After(s.d):
		return fault.OK
	}
}

// At 10 ms each, one after the other, a thousand stores would take longer than the function may
// run. Events that are due now would wait for them.
func TestAThousandScheduledEventsFitIntoOneInvocation(t *testing.T) {
	for call, ahead := range map[string]time.Duration{
		"PutScheduled":     2 * time.Hour,
		"SendMessageBatch": 10 * time.Minute,
	} {
		t.Run(call, func(t *testing.T) {
			play(t, nil, func(b *bench) {
				b.inject = slow{call, 10 * time.Millisecond}
				when := time.Now().Add(ahead)
				for i := range 999 {
					b.send(notBefore(put(fmt.Sprint("later ", i), 1), when))
				}
				b.send(put("now", 1))
				kept, took := b.invoke(1000)
				if len(kept) != 1 || took > 2*time.Second {
					b.Errorf("%d messages kept after %s, want only the messages that are due now, within 2s", len(kept), took)
				}
				b.Noted(journal.Scheduled, 999)
				b.Noted(journal.Launched, 1)
			})
		})
	}
}

// An event that cannot be stored in time is received again. Storing such events does not use the
// time of events that are due now.
func TestASlowScheduleDoesNotKeepTheRestFromBeingHeld(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.inject = slow{"PutScheduled", time.Second}
		for i := range 300 {
			b.send(notBefore(put(fmt.Sprint("later ", i), 1), time.Now().Add(2*time.Hour)))
		}
		b.send(put("now", 1))
		kept, took := b.invoke(301)
		stored := len(b.Notes.Of(journal.Scheduled))
		if took > 5*time.Second || stored == 0 || len(kept) != 301-stored || b.schedule.Len() != stored {
			b.Errorf("%d messages kept after %s, %d acknowledged, %d stored: want the stored ones acknowledged, the others kept",
				len(kept), took, stored, b.schedule.Len())
		}
		b.Noted(journal.Launched, 1)
	})
}

// Each event is done by its own confirmation. In this test, one batch of copies fails in SQS, and
// one item.
func TestEachScheduledEventStandsForItself(t *testing.T) {
	for call, c := range map[string]struct {
		ahead       time.Duration
		fails, done int
	}{"PutScheduled": {2 * time.Hour, 1, 24}, "SendMessageBatch": {10 * time.Minute, 10, 15}} {
		t.Run(call, func(t *testing.T) {
			play(t, nil, func(b *bench) {
				down := true
				b.parallel = oneByOne
				b.inject = decide(func(op fault.Op) fault.Verdict {
					if op.Call == call && down && (op.Doc == "" || op.Doc == doc("later 7")) {
						down = false
						return fault.FailBefore
					}
					return fault.OK
				})
				for i := range 25 {
					b.send(notBefore(put(fmt.Sprint("later ", i), 1), time.Now().Add(c.ahead)))
				}
				if kept := b.poll(); len(kept) != c.fails {
					b.Errorf("%d messages kept, want the %d without a confirmation", len(kept), c.fails)
				}
				b.Noted(journal.Scheduled, c.done)
				b.Noted(journal.Failed, c.fails)
				if n := b.schedule.Len() + b.live.Counts().Delayed; n != c.done {
					b.Errorf("%d events are stored, want %d", n, c.done)
				}
			})
		})
	}
}
