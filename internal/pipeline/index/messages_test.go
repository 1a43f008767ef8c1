// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// deletions records the messages that a queue is asked to delete.
type deletions struct {
	queue.Queue
	mu    *sync.Mutex
	calls *[][]string
}

func (d deletions) Delete(ctx context.Context, receipts []string) []error {
	d.mu.Lock()
	*d.calls = append(*d.calls, slices.Clone(receipts))
	d.mu.Unlock()
	return d.Queue.Delete(ctx, receipts)
}

func (b *bench) recordDeletions() (calls *[][]string) {
	calls = new([][]string)
	var mu sync.Mutex
	b.between = func(q queue.Queue) queue.Queue { return deletions{q, &mu, calls} }
	return calls
}

func removed(keys ...string) queue.Outgoing {
	var records []string
	for _, key := range keys {
		id, sequencer, _ := strings.Cut(key, "@")
		records = append(records,
			fmt.Sprintf(`{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectRemoved:Delete",`+
				`"eventTime":"2026-05-04T10:00:00Z","s3":{"bucket":{"name":"b"},"object":{"key":%q,"sequencer":%q}}}`,
				id,
				sequencer))
	}
	return queue.Outgoing{
		Body:       `{"Records":[` + strings.Join(records, ",") + `]}`,
		Attributes: map[string]queue.Attribute{queue.AttrSource: queue.Text("s3")},
	}
}

func throttled() memorysink.Answer {
	return memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Throttled, Status: 429, Reason: "too_many_requests"}}
}

// Row 29 of docs/faults.md: a message is deleted once, after its last event. This holds for any
// number of events and turns.
func TestDeleteBatchNamesEachMessageOnce(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		calls := b.recordDeletions()
		refused := memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Refused, Reason: "some_exception"}}
		b.sink.Script("content#b/two", refused)
		b.sink.Script("content#b/three", refused, refused)
		s := b.holdOn(flight.Live, removed("one@01", "two@01", "three@01", "one@02"), removed("one@03", "two@01"),
			queue.Outgoing{Body: put("a", 1)}, queue.Outgoing{Body: put("a", 2)})
		// one document is sent in a separate request, so that the turn deletes twice
		b.Change("content#b/one", func(r *shard.Row) { r.Attempts = 3 })
		s = b.turn(s)
		if len(*calls) != 1 || len((*calls)[0]) != 2 {
			b.Fatalf("deleted %v in the first turn, want the two messages of a", *calls)
		}
		b.inQueue(2)
		if turns := b.fly(s, 10); turns < 2 {
			b.Errorf("done after %d more turns, want one for each refusal at least", turns)
		}
		var all []string
		for _, c := range *calls {
			if len(c) == 0 {
				b.Error("a delete call has no message")
			}
			all = append(all, c...)
		}
		slices.Sort(all)
		if len(all) != 4 || len(slices.Compact(slices.Clone(all))) != 4 {
			b.Errorf("deleted %v, want each of four messages once", all)
		}
		b.inQueue(0)
	})
}

// Row 29 of docs/faults.md: if an entry of a batch call fails, only that entry is affected.
func TestPerEntryFailuresAreRead(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(many(12, put, "doc-")...) // two of SQS's batches of ten
		b.inject = fails("DeleteMessageBatch", fault.FailBefore, 1)
		b.fly(s, 1)
		b.Noted(journal.DeleteLost, 10)
		b.Noted(journal.Deleted, 2)
		b.inQueue(10)
		lost := map[string]bool{}
		for _, n := range b.Notes.Of(journal.DeleteLost) {
			lost[n.Message] = true
		}
		for _, n := range b.Notes.Of(journal.Deleted) {
			if lost[n.Message] {
				b.Errorf("%s counts as deleted and as lost", n.Message)
			}
		}
		requests := b.sink.Counts().Requests
		time.Sleep(time.Minute)
		if s := b.receive(flight.Live); !s.Done {
			b.Error("a redelivery of committed versions started a flight")
		}
		b.Noted(journal.Duplicate, 10)
		b.inQueue(0)
		b.requests(requests, "no more requests")
	})
}

// A message that leaves the flight is given back at once, with all its events. None of its
// remaining events may count the message as done.
func TestAMessageThatLeavesTheFlightIsGivenBackWhole(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.holdOn(flight.Live, removed("one@01", "two@01"), queue.Outgoing{Body: put("a", 1)})
		b.Write(shard.Write{Doc: "content#b/two", Drop: true}) // for example because its row was restored from a backup
		b.sink.Script("content#b/one", throttled())            // the other event of the message has to wait
		if s = b.turn(s); !s.Done {
			b.Errorf("state %+v, want nothing of the message left in the flight", s)
		}
		b.Noted(journal.LeftFlight, 1)
		b.Noted(journal.Deleted, 1)
		b.queued(1, 0, "the notification is given back at once")
		b.fly(b.receive(flight.Live), 3)
		b.inQueue(0)
		if r := b.Row("content#b/two"); r.Committed == "" {
			b.Errorf("row %+v, want the version admitted again and committed", r)
		}
	})
}

// A turn that begins shortly before its messages become visible extends them first, because SQS
// must not deliver them during the write.
func TestVisibilityIsExtendedBeforeALateWrite(t *testing.T) {
	stage{sink: memorysink.Settings{Latency: 5 * time.Second}}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		time.Sleep(b.Config.Queues.Visibility - 3*time.Second)
		b.inject = at("COMMIT", func() {
			b.queued(0, 1, "while it is being written")
		})
		b.fly(s, 1)
		b.Noted(journal.Extended, 1)
		b.inQueue(0)
	})
}

// Visibility is extended only if it would end before the write and its commit. A usual flight needs
// no extension.
func TestTheCommonFlightIsNeverExtended(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1), put("b", 1))
		b.fly(s, 1)
		b.Noted(journal.Extended, 0)
	})
}

// An expired receipt handle is expected, because the message is received again. It does not count
// as a failed call.
func TestAStaleHandleIsNotAFailedCall(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		b.leased(doc("a"), 2*time.Minute)
		time.Sleep(b.Config.Queues.Visibility + time.Second) // the message is visible again
		asked := b.visibility()
		b.turn(s)
		if *asked == 0 {
			b.Error("nothing was asked of the stale handle")
		}
		b.Noted(journal.CallFailed, 0)
	})
}

func TestAWaitingFlightIsExtendedToItsNextTurn(t *testing.T) {
	stage{cfg: func(c *config.Config) { c.Flight.Kind = config.FlightExpress }}.play(t, func(b *bench) {
		s := b.hold(put("a", 1), put("b", 1))
		b.leased(doc("a"), 2*time.Minute)
		asked := b.visibility()
		s = b.turn(s)
		if *asked != 1 {
			b.Errorf("extended %d messages, want only the remaining one", *asked)
		}
		n := b.Notes.Of(journal.Extended)
		if len(n) != 1 || n[0].Count != 1 || n[0].Until.Before(s.Wake().Add(2*b.Config.Index.Timeout)) {
			b.Errorf("extensions %+v, want the remaining message, past the next turn at %s", n, s.Wake())
		}
		b.queued(0, 1, "one message is held")
		time.Sleep(time.Until(s.Wake()) - time.Second)
		b.queued(0, 1, "before its next turn")
		b.fly(s, 2)
		b.inQueue(0)
	})
}

// A turn begins a moment after its wake. If a message was extended up to the wake, the turn does
// not extend it again at its beginning. Otherwise an outage would cost twice the calls.
func TestATurnThatBeginsAMomentLateExtendsNothingASecondTime(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		waits := 0
		for ; waits < 3; waits++ {
			b.leased(doc("a"), 30*time.Second)
			s = b.turn(s)
			time.Sleep(time.Until(s.Wake()) + 4*time.Second)
		}
		b.Noted(journal.Extended, waits)
	})
}

func TestTwelveHoursAreKeptToTheMinute(t *testing.T) {
	stage{cfg: func(c *config.Config) { c.Flight.Kind = config.FlightStandard }}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		b.leased(doc("a"), 20*time.Hour)
		s = b.turn(s)
		b.queued(0, 1, "the message is held")
		for _, n := range b.Notes.Of(journal.Extended) {
			if held := n.Until.Sub(b.manifest(s.Flight).Received); held > queue.MaxHold {
				b.Errorf("extended to %s after the receive: SQS would refuse that", held)
			}
		}
		time.Sleep(queue.MaxHold - 14*time.Minute) // a turn shortly before the end
		next, _, err := b.invoke(s)
		if err != nil || !next.Done {
			b.Fatalf("state %+v (%v), want the flight ended", next, err)
		}
		b.Noted(journal.TwelveHours, 1)
		b.queued(1, 0, "the message is given back at once")
	})
}

func (b *bench) manifest(id flight.ID) *flight.Manifest {
	b.Helper()
	m, err := b.flights.Get(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return m
}
