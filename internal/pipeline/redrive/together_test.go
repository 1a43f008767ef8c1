// SPDX-License-Identifier: Apache-2.0

package redrive_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// together makes dead letters of n events of one message.
func (b *bench) together(n int, m queue.Message) (ids []string, events []event.Event) {
	b.Helper()
	for i := range n {
		e := b.EventOf(put(fmt.Sprint(m.Body, i), 1))
		e.Index = i
		b.Admit(e)
		lease := b.Claim(e)
		l := b.SendLetter(b.dead, m, e, deadletter.RejectedBySink)
		if kept := b.dlq.Handle(b.Context(), b.Take(b.dead)); len(kept) != 0 {
			b.Fatalf("dlq kept %v", kept)
		}
		b.reject(lease)
		ids, events = append(ids, l.ID), append(events, e)
	}
	return ids, events
}

// redriven checks how often a dead letter was sent, and that its row agrees.
func (b *bench) redriven(id string, e event.Event, times int) {
	b.Helper()
	f, _ := b.Facts(id)
	dead, want := b.Row(e.Doc).Dead, times > 0
	if f.Redrives != times || (f.State == deadletter.Redriven) != want || (dead == "") != want {
		b.Errorf("%s was redriven %d times and is %s, its row says dead %q; want %d times", e.Doc, f.Redrives, f.State,
			dead, times)
	}
}

// In an earlier build, 300 dead letters of one message sent the message again 160 times, with 300
// events each time.
func TestAMessageIsSentOnceForAllOfItsDeadLetters(t *testing.T) {
	play(t, func(b *bench) {
		const n = 30
		m := message("one message ")
		first, events := b.together(n, m)
		b.die(message(put("between", 1)))
		second, others := b.together(3, message("another message "))
		for _, dry := range []bool{true, false} {
			tally, err := b.redriveAll(redrive.Order{How: redrive.How{DryRun: dry}})
			sent := redrive.Sent
			if dry {
				sent = redrive.WouldSend
			}
			if err != nil || tally[sent] != 3 || tally[redrive.Covered] != n-1+2 || len(tally) != 2 {
				t.Errorf("dry %v: %v, error %v; want three messages sent", dry, tally, err)
			}
			if !dry {
				break
			}
			for i, id := range first {
				b.redriven(id, events[i], 0)
			}
		}
		for i, id := range append(first, second...) {
			b.redriven(id, append(events, others...)[i], 1)
		}
		b.Noted(journal.Redriven, n+1+3)
		b.sent(b.live, 3)
	})
}

func TestOnlyDeadLettersThatMayBeSentShareTheMessage(t *testing.T) {
	play(t, func(b *bench) {
		ids, events := b.together(5, message("one message "))
		b.Change(events[1].Doc, func(r *shard.Row) { r.Dead, r.Pending = "", events[1].Key }) // pending again
		newer := b.EventOf(put("one message 2", 2))
		b.Admit(newer)
		b.commit(newer)
		usecasetest.OK(t, b.Letters.MarkRedriven(b.Context(), ids[3], time.Now(), false))
		late := message("one message ")
		late.Sent = late.Sent.Add(time.Minute) // the same body, published again
		b.SendLetter(b.dead, late, events[4], deadletter.RejectedBySink)
		b.dlq.Handle(b.Context(), b.Take(b.dead))
		tally, err := b.redriveAll(redrive.Order{})
		want := outcomes{redrive.Sent: 2, redrive.Busy: 1, redrive.Superseded: 1}
		if err != nil || fmt.Sprint(tally) != fmt.Sprint(want) {
			t.Errorf("%v, error %v; want %v", tally, err, want)
		}
		b.sent(b.live, 2)
	})
}

// A dead letter that an operator selects by its id is sent alone. The other events of the message
// stay dead.
func TestADeadLetterThatIsNamedGoesAlone(t *testing.T) {
	play(t, func(b *bench) {
		ids, events := b.together(3, message("one message "))
		order := redrive.Order{Selection: redrive.Selection{ID: ids[1]}}
		tally, err := b.redriveAll(order)
		if err != nil || tally[redrive.Sent] != 1 || len(tally) != 1 {
			t.Errorf("%v, error %v", tally, err)
		}
		for i, times := range []int{0, 1, 0} {
			b.redriven(ids[i], events[i], times)
		}
		b.sent(b.live, 1)
		filter := redrive.Order{Selection: selection(deadletter.Filter{Doc: events[2].Doc})}
		tally, err = b.redriveAll(filter)
		if err != nil || tally[redrive.Sent] != 1 || len(tally) != 1 {
			t.Errorf("%v, error %v", tally, err)
		}
		b.redriven(ids[0], events[0], 0)
		b.redriven(ids[2], events[2], 1)
	})
}

// If a call fails, the next redrive sends the dead letters that were not sent, and no dead letter
// is lost.
func TestACampaignThatEndsHalfWayGoesOn(t *testing.T) {
	t.Parallel()
	usecasetest.NoErrorIsLost(t, func(t *testing.T, f *usecasetest.FailingCall) ([]journal.Note, error) {
		b := setup(t)
		ids, events := b.together(4, message("one message "))
		v := fault.NewInvocation(f, "redrive", 1)
		v.Failure = usecasetest.Denied
		good := *b.service
		b.service.Shards, b.service.Letters = v.Shards(b.Shards), v.DeadLetters(b.Letters)
		b.service.Queues = func(s string, l flight.Lane) queue.Queue { return v.Queue(good.Queues(s, l)) }
		tally, err := b.redriveAll(redrive.Order{})
		if err == nil && tally.total() != 4 {
			t.Errorf("tally %v, want every dead letter in it", tally)
		}
		*b.service = good
		if _, err := b.redriveAll(redrive.Order{}); err != nil {
			t.Error(err)
		}
		for i, id := range ids {
			if g, ok := b.Facts(id); !ok || g.State != deadletter.Redriven || b.Row(events[i].Doc).Dead != "" {
				t.Errorf("%+v, stored %v, row dead %q", g, ok, b.Row(events[i].Doc).Dead)
			}
		}
		if got := len(b.Take(b.live)); got < 1 || got > 2 {
			t.Errorf("the message was sent %d times, want once or, after a failure, twice", got)
		}
		return b.Notes.All(), err
	})
}
