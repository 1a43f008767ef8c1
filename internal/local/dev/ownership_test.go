// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"errors"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// The tests of this file play the flows of docs/faults.md about the lease of a document and about
// commits.

func TestRedeliveryDuringProcessingIsDeferred(t *testing.T) {
	stage{sink: memorysink.Settings{Latency: 3 * time.Second}}.play(t, func(s *scene) {
		m := put(0, "a", 1)
		s.send(m)
		s.wait(8*time.Second + 500*time.Millisecond) // the write is running now
		s.send(m)                                    // send the same event again
		r := s.settle()
		s.holds("a", "1")
		s.writes("a", 1)
		if r.Duplicates != 1 || r.Dead != 0 {
			t.Errorf("%d duplicates, %d dead, want 1 and 0", r.Duplicates, r.Dead)
		}
		if row := s.row("a"); row.Refusals != 0 || row.Attempts != 0 {
			t.Errorf("refusals %d, attempts %d, want nothing counted against it", row.Refusals, row.Attempts)
		}
	})
}

func TestLowerVersionOfABatchIsHeldUntilTheNewestIsCommitted(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.inject.when("COMMIT", func() {
			if n := s.p.lane(flight.Live).queue.Counts().Total(); n != 2 {
				t.Errorf("%d messages in the queue before the commit, want both", n)
			}
		})
		s.send(put(0, "a", 1), put(0, "a", 2))
		s.settle()
		s.noted(journal.Deleted, 2)
		if c, d := s.notes.Of(journal.Committed), s.notes.Of(journal.Deleted); len(c) == 1 && d[0].At.Before(c[0].At) {
			t.Error("a message was deleted before the commit")
		}
	})
}

func TestCommitAfterLostLeaseIsRefusedAndNotAcknowledged(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		m := put(0, "a", 1)
		s.inject.when("COMMIT", func() { // another owner has taken over in the meantime, and is still writing
			row := s.row("a")
			w := shard.Write{Doc: doc("a"), Update: []shard.Action{
				{
					Verb: shard.Set, Attr: shard.AttrOwner,
					Val: shard.Value{Kind: shard.KindString, Text: "somebody else"},
				},
				{
					Verb: shard.Set, Attr: shard.AttrLeaseUntil,
					Val: shard.Value{Kind: shard.KindNumber, Num: int64(row.LeaseUntil)},
				},
			}}
			if _, err := s.e.Shards.Write(s.ctx, w); err != nil {
				t.Error(err)
			}
		})
		s.send(m)
		s.wait(9 * time.Second)
		s.noted(journal.LeaseLost, 1)
		s.noted(journal.Committed, 0)
		s.noted(journal.Deleted, 0)
		if row := s.row("a"); row.Committed != "" {
			t.Error("a commit without the lease was accepted")
		}
		s.settle() // the other owner never commits, and its lease expires
		s.holds("a", "1")
		s.noted(journal.Committed, 1)
	})
}

func TestZombieWriteIsRefusedByAVersionedSink(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.send(put(0, "a", 1))
		s.settle()
		old := s.sink.History(doc("a"))[0]
		s.send(put(0, "a", 2))
		s.settle()
		out := s.sink.Write(s.ctx, []sink.Op{old}) // this request was delayed in the network until now
		if out[0].Kind != sink.Newer {
			t.Errorf("zombie write: %v, want %v", out[0].Kind, sink.Newer)
		}
		s.holds("a", "2")
	})
}

func TestZombieWriteNeedsALeaseShorterThanTheTimeout(t *testing.T) {
	stage{noVers: true}.play(t, func(s *scene) {
		s.inject.next("_bulk", fault.FailAfter, 1) // the sink may have the request, but the answer is lost
		s.send(put(0, "a", 1))
		s.wait(9 * time.Second)
		row := s.row("a")
		cfg := s.e.cfg
		claim := s.notes.Of(journal.Claimed)[0]
		if got, want := row.LeaseUntil.Sub(shard.MicrosOf(claim.At)), cfg.Lease("search"); got > want ||
			got < want-time.Second {
			t.Errorf("lease of %s, want the rest of the invocation, guard and applyDelay: about %s", got, want)
		}
		s.send(put(0, "a", 2))
		s.wait(time.Until(row.LeaseUntil.Time()) - time.Second)
		if got := len(s.notes.Of(journal.Claimed)); got != 1 {
			t.Errorf("%d claims while a request may still land, want 1", got)
		}
		s.settle()
		s.holds("a", "2")
	})
}

func TestTakeoverIsAFreshLease(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.inject.next("COMMIT", fault.CrashBefore, 1)
		s.send(put(0, "a", 1))
		s.wait(9 * time.Second)
		first := s.row("a")
		s.inject.next("COMMIT", fault.CrashBefore, 1)
		s.wait(14 * time.Second)
		second := s.row("a")
		if second.Owner == first.Owner || second.LeaseUntil <= first.LeaseUntil {
			t.Errorf("lease of %s until %d after one of %s until %d, want a fresh one", second.Owner, second.LeaseUntil,
				first.Owner, first.LeaseUntil)
		}
		s.settle()
		s.holds("a", "1")
		s.noted(journal.Committed, 1)
	})
}

func TestLateReleaseNeverFreesTheNextClaim(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.sink.Script(doc("a"), memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Refused, Reason: "unclassified"}})
		s.send(put(0, "a", 1))
		var late shard.Write
		s.inject.when("RELEASE", func() {
			row := s.row("a")
			late = shard.Release(shard.Lease{Doc: doc("a"), Key: row.Claimed, Token: row.Owner, At: 1}, "late", false)
		})
		s.inject.when("COMMIT", func() { // the lease of the next claim is valid
			if _, err := s.e.Shards.Write(s.ctx, late); err == nil {
				t.Error("a late RELEASE was accepted under the next claim")
			}
			if s.row("a").Owner == "" {
				t.Error("the late RELEASE freed the lease")
			}
		})
		s.settle()
		s.writes("a", 1)
	})
}

func TestOverlappingInvocationsOfOneFlightHaveTokensOfTheirOwn(t *testing.T) {
	stage{sink: memorysink.Settings{Latency: time.Second}}.play(t, func(s *scene) {
		s.inject.when("StartExecution", func() {})
		s.send(put(0, "a", 1))
		s.wait(3 * time.Second)
		list, _, err := s.e.Flights.List(s.ctx, "", 10)
		if err != nil || len(list) != 1 {
			t.Fatalf("flights %v, %v", list, err)
		}
		s.startAgain(list[0].ID) // run the same flight a second time
		s.settle()
		s.writes("a", 1)
		s.noted(journal.Claimed, 1)
	})
}

func TestCrashAfterClaimWaitsForTheLease(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.inject.next("CLAIM", fault.CrashAfter, 1)
		s.send(put(0, "a", 1))
		s.wait(9 * time.Second)
		until := s.row("a").LeaseUntil.Time()
		s.settle()
		s.writes("a", 1)
		if c := s.notes.Of(journal.Committed)[0]; c.At.Before(until) {
			t.Errorf("written at %s, before the lease of the dead ended at %s", c.At, until)
		}
	})
}

func TestInvocationKilledMidBatchKeepsWhatWasFinished(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.send(put(0, "a", 1), put(0, "b", 1), put(0, "c", 1), put(0, "d", 1))
		done := 0
		s.inject.when("COMMIT", func() {
			done++
			s.inject.next("COMMIT", fault.CrashBefore, 1)
		})
		s.wait(10 * time.Second)
		finished := 0
		for _, id := range []string{"a", "b", "c", "d"} {
			if row := s.row(id); row.Committed != "" {
				finished++
			} else if limit := time.Now().Add(s.e.cfg.Lease("search")); row.LeaseUntil.Time().After(limit) {
				t.Errorf("%s: a lease until %s outlives its time", id, row.LeaseUntil.Time())
			}
		}
		if finished == 0 || finished == 4 {
			t.Errorf("%d of 4 documents committed when the invocation was killed, want some", finished)
		}
		s.settle()
		for _, id := range []string{"a", "b", "c", "d"} {
			s.holds(id, "1")
		}
	})
}

var errDown = errors.New("connection refused")
