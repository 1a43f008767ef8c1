// SPDX-License-Identifier: Apache-2.0

package prune_test

import (
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// once makes the first call of every name fail, and no other call. Calls to queues never fail,
// because the next run sends what was not sent.
func once(v fault.Verdict, called map[string]int) fault.Injector {
	var mu sync.Mutex
	return decide(func(op fault.Op) fault.Verdict {
		mu.Lock()
		defer mu.Unlock()
		called[op.Call]++
		if op.Service == fault.SQS || called[op.Call] > 1 {
			return fault.OK
		}
		return v
	})
}

// One lost answer or one throttled call is not an alarm, because the same run repeats the call.
func TestOneLostAnswerFailsNoSegment(t *testing.T) {
	t.Parallel()
	for _, v := range []fault.Verdict{fault.FailBefore, fault.FailAfter, fault.Throttle} {
		t.Run(v.String(), func(t *testing.T) {
			play(t, func(b *bench) {
				again := b.letter(doc("redriven"), 1, deadletter.Contract)
				if err := b.Letters.MarkRedriven(b.Context(), again, time.Now(), false); err != nil {
					b.Fatal(err)
				}
				time.Sleep(b.Config.Queues.DeadLetterRetention - time.Hour)
				b.flight(entry{doc("undone"), 1})
				b.letter(doc("undone"), 1, deadletter.Contract)
				time.Sleep(time.Hour)
				called := map[string]int{}
				p, _ := b.faulty(once(v, called))
				rep, err := p.Run(b.Context())
				if err != nil {
					b.Errorf("run: %v, want no failure", err)
				}
				if rep.Letters.Parked != 1 || rep.Flights.Deleted != 1 || len(b.Notes.Of(journal.Parked)) != 1 {
					b.Errorf("report %+v, want one dead letter parked again and one flight deleted", rep)
				}
				for _, call := range []string{
					"GetManifest", "GetLetter", "PutLetter", "DeleteManifest", "ListLetters",
					"ListFlights", "ListScheduled", "Scan",
				} {
					if called[call] < 2 {
						b.Errorf("%s was called %d times, want a second try", call, called[call])
					}
				}
			})
		})
	}
}

// A dead letter that was dropped after prune listed it is neither parked again nor logged.
func TestADeadLetterThatWasDroppedMeanwhileIsNotParkedAgain(t *testing.T) {
	play(t, func(b *bench) {
		id := b.letter(doc(1), 1, deadletter.Refusals)
		if err := b.Letters.MarkRedriven(b.Context(), id, time.Now(), false); err != nil {
			b.Fatal(err)
		}
		time.Sleep(b.Config.Queues.DeadLetterRetention)
		p, _ := b.faulty(usecasetest.On("GetLetter", func(fault.Op) {
			if err := b.Letters.Drop(b.Context(), id); err != nil {
				b.Error(err)
			}
		}))
		rep, err := p.Run(b.Context())
		if err != nil || rep.Letters.Parked != 0 || rep.Letters.Redriven != 0 {
			b.Errorf("report %+v, error %v; want nothing parked or sent", rep.Letters, err)
		}
		b.Noted(journal.Parked, 0)
		if _, ok := b.Facts(id); ok {
			b.Error("the dead letter is back")
		}
	})
}

// A flight that uses up the time of a run does not block later flights: the next run continues
// after that flight.
func TestALargeFlightDoesNotStandInTheWayOfOthers(t *testing.T) {
	play(t, func(b *bench) {
		var large []entry
		for i := range 2000 {
			large = append(large, entry{doc(i), 1})
		}
		stuck := b.flight(large...)
		d := doc("done")
		done := b.flight(entry{d, 1})
		b.commit(d, 1, shard.Put)
		time.Sleep(time.Hour)
		p, _ := b.faulty(usecasetest.On("GetLetter", func(fault.Op) {
			time.Sleep(50 * time.Millisecond)
		}))
		// About a third of the time is for flights. 2,000 reads, 16 in parallel, take six seconds.
		p.Budget = prune.Budget{Time: 10 * time.Second}
		for range 2 {
			if _, err := p.Run(b.Context()); err != nil {
				b.Errorf("run: %v, want no failure because the time is over", err)
			}
			time.Sleep(b.Config.Lifecycle.PruneEvery)
		}
		if got := b.stored(); len(got) != 1 || got[0] != stuck {
			b.Errorf("flights %v are left, want only the large one %s, without %s, which is done", got, stuck, done)
		}
	})
}
