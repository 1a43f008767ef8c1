// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

// SQS takes only whole seconds. A message that was received only a few times soon returns to a sink
// that is back. After many receives the waits are longer, so that the receives last for days.
func TestAMessageGoesAwayForLongerTheOftenerItIsReceived(t *testing.T) {
	t.Parallel()
	type row struct {
		receives    int
		least, most time.Duration // in seconds
		lane        flight.Lane
	}
	for name, tt := range map[string]row{
		"the first": {1, 7, 10, flight.Live}, "the second": {2, 7, 10, flight.Live},
		"the third": {3, 33, 42, flight.Live}, "the third in the bulk lane": {3, 49, 63, flight.Bulk},
		"the twentieth": {20, 33, 42, flight.Live}, "the 21st": {21, 192, 240, flight.Live},
		"the 110th": {110, 192, 240, flight.Live}, "the 111th": {111, 720, 900, flight.Live},
		"a late one": {400, 720, 900, flight.Live},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(b *bench) {
				b.Write(shardtest.Put(shard.Row{ // the sink has been away for two minutes
					Doc: shard.HealthRow("search"), OpenUntil: now().Add(5 * time.Second), Level: 20,
				}))
				m := queue.Message{ID: "m", Receipt: "r", Body: put("a", 1), Sent: time.Now(), ReceiveCount: tt.receives}
				h, _ := b.handler()
				h.Lane = tt.lane
				if kept := h.Handle(b.Context(), []queue.Message{m}); len(kept) != 1 {
					b.Errorf("kept %v, want the message", kept)
				}
				for _, n := range b.Notes.Of(journal.Away) {
					wait := n.Until.Sub(n.At)
					if wait < tt.least*time.Second || wait > tt.most*time.Second || wait%time.Second != 0 {
						b.Errorf("receive %d: the message is away for %s, want whole seconds from %d to %d", tt.receives, wait, tt.least, tt.most)
					}
				}
				b.Noted(journal.Away, 1)
			})
		})
	}
}

// A queue keeps a message back for at most fifteen minutes. One second is for rounding up.
func TestTheQueueKeepsAnEventUpToItsLongestDelay(t *testing.T) {
	t.Parallel()
	for ahead, inQueue := range map[time.Duration]bool{
		queue.MaxDelay - time.Second:                    true,
		queue.MaxDelay - time.Second + time.Millisecond: false,
	} {
		t.Run(ahead.String(), func(t *testing.T) {
			play(t, nil, func(b *bench) {
				b.send(notBefore(put("a", 1), time.Now().Add(ahead)))
				b.poll()
				b.Noted(journal.Scheduled, 1)
				if got := b.live.Counts().Delayed == 1; got != inQueue || b.schedule.Len() == 0 != inQueue {
					b.Errorf("%s ahead: in the queue: %t, %d in the table; want in the queue: %t", ahead, got,
						b.schedule.Len(), inQueue)
				}
			})
		})
	}
}

// Messages that were sent away together return batch by batch, not all at once.
func TestBatchesThatGoAwayComeBackAtDifferentTimes(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.Write(shardtest.Put(shard.Row{Doc: shard.HealthRow("search"), OpenUntil: now().Add(time.Hour), Level: 7}))
		h, _ := b.handler()
		waits := map[time.Duration]bool{}
		for i := range 20 {
			m := queue.Message{ID: "m", Receipt: fmt.Sprint(i, " of a queue"), Body: put("a", 1), Sent: time.Now()}
			h.Handle(b.Context(), []queue.Message{m})
		}
		for _, n := range b.Notes.Of(journal.Away) {
			waits[n.Until.Sub(n.At)] = true
		}
		if len(waits) < 10 {
			b.Errorf("20 batches return after %v, want different times", waits)
		}
	})
}

// A claim between the dead letter and PARK keeps the message, and the note gives the reason.
func TestALeaseThatComesBeforePARKKeepsTheMessageAndIsNoted(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.admit(put("a", 1))
		b.overdue(put("a", 1))
		b.inject = at("PARK", func() { b.Claim(b.EventOf(put("a", 1))) })
		b.keeps(1, "the row is leased")
		if n := b.Notes.Of(journal.Failed); len(n) != 1 || !strings.Contains(n[0].Detail, "PARK: the row is leased") {
			b.Errorf("notes %+v, want one with the reason", n)
		}
	})
}

// The write that holds the lease may commit the version. So the message stays in the queue and
// returns after its visibility. A flight could hold the message for twelve hours more, and the
// queue's retention could end before that.
func TestAnOverdueVersionThatIsBeingWrittenComesBack(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.admit(put("a", 1))
		b.overdue(put("a", 1))
		b.Claim(b.EventOf(put("a", 1)))
		b.keeps(1, "the row is leased")
		b.Noted(journal.Launched, 0)
		b.Noted(journal.DeadLettered, 0)
		b.Noted(journal.Failed, 1)
	})
}

// The newest version is written at the end of its burst, so an older version waits until then at
// most.
func TestAVersionBehindANewerOneCountsFromTheEndOfItsBurst(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.admit(put("a", 2))
		burst := b.Row(doc("a")).BurstStart
		for version, after := range []time.Duration{b.Config.Debounce.Quiet + time.Second, b.Config.Debounce.MaxWait} {
			b.ids = 10 * version
			time.Sleep(burst.Add(after).Sub(now()))
			b.send(put("a", version))
			b.poll()
			want := min(now(), burst.Add(b.Config.Debounce.MaxWait)-1)
			all := b.manifests()
			if got := all[len(all)-1].Records[0].Events[0].Admitted; got != want {
				b.Errorf("%s after the first: admitted %s before now, want %s", after, now().Sub(got), now().Sub(want))
			}
		}
	})
}

// At the first receive of a message, the queue's visibility is as long as the wait, so a call would
// change nothing.
func TestAFlightThatCannotStartCostsNoCallAtTheFirstReceive(t *testing.T) {
	play(t, nil, func(b *bench) {
		held := 0
		b.inject = usecasetest.Where(fault.FailBefore, func(op fault.Op) bool {
			if op.Call == "ChangeMessageVisibilityBatch" {
				held++
				return false
			}
			return op.Call == "StartExecution"
		})
		b.send(put("a", 1))
		for _, want := range []int{0, 1} {
			b.keeps(1, "no flight holds the message")
			if held != want {
				b.Errorf("the visibility was changed %d times, want %d", held, want)
			}
			time.Sleep(b.Config.Queues.Visibility + time.Second)
		}
	})
}
