// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// rejects makes the sink reject the next n writes of a document.
func (b *bench) rejects(id string, n int) {
	for range n {
		b.sink.Script(doc(id), poison())
	}
}

// The flight that holds several dead versions also writes the newest good version behind them,
// without a redelivery. A row remembers only one dead version, so a redelivery would try all of
// them again.
func TestDeadVersionsAboveAGoodOneEndInOneFlight(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		b.rejects("a", 3)
		s := b.hold(put("a", 1), put("a", 2), put("a", 3), put("a", 4))
		b.delivers(s, 4, "a", "1")
		b.Noted(journal.Admitted, 4) // receive's ADMIT and three ADMITs of this flight
		b.Noted(journal.LeftFlight, 0)
		b.Noted(journal.Committed, 1)
		b.WantLetters(b.dead, 3)
		b.inQueue(0)
	})
}

// A version is not made pending if another receiver has deleted or received its message, because no
// message would bring the version back.
func TestAVersionWhoseMessageIsGoneIsNotAdmitted(t *testing.T) {
	usecasetest.Table(t, stage{}.play, map[string]func(b *bench, m queue.Message){
		"deleted":   func(b *bench, m queue.Message) { b.live.Delete(b.Context(), []string{m.Receipt}) },
		"received":  func(b *bench, m queue.Message) { b.live.Hold(b.Context(), []string{m.Receipt}, 0) },
		"no answer": nil,
	}, func(b *bench, lose func(b *bench, m queue.Message)) {
		b.rejects("a", 1)
		s := b.turn(b.hold(put("a", 1), put("a", 2)))
		if s.Done {
			b.Fatal("done with version 1 left")
		}
		m, err := b.flights.Get(b.Context(), s.Flight)
		if err != nil {
			b.Fatal(err)
		}
		if lose != nil {
			lose(b, m.Records[0].Message)
		} else {
			b.inject = fails("ChangeMessageVisibilityBatch", fault.FailBefore, 10)
		}
		b.fly(s, 1)
		b.Noted(journal.LeftFlight, 1)
		if r := b.Row(doc("a")); r.Pending != "" || r.Committed != "" {
			b.Errorf("row %+v, want nothing pending", r)
		}
	})
}

// The age guard applies in index as it does in receive: without a commit, nothing can judge a
// message that is older than rows are kept.
func TestAVersionTooOldToJudgeIsLeftToReceive(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		b.rejects("a", 1)
		span := b.Config.Lifecycle.RowRetention - b.Config.Lifecycle.ProducerLateness
		sent := time.Now().Add(-span).Add(7 * time.Second) // too old between receive and the turn after the dead letter
		old := queue.Outgoing{
			Body: put("a", 1),
			Attributes: map[string]queue.Attribute{queue.AttrFirstSent: queue.Text(strconv.FormatInt(sent.UnixMilli(),
				10))},
		}
		s := b.holdOn(flight.Live, old, queue.Outgoing{Body: put("a", 2)})
		time.Sleep(8 * time.Second)
		b.fly(s, 3)
		b.Noted(journal.Rejected, 1)
		b.Noted(journal.LeftFlight, 1)
		b.holds("a", "")
		b.inQueue(1)
	})
}

func TestAnADMITWithoutAnAnswerIsTriedInTheNextTurn(t *testing.T) {
	for what, turns := range map[fault.Verdict]int{fault.FailBefore: 3, fault.FailAfter: 2} {
		t.Run(what.String(), func(t *testing.T) {
			stage{}.play(t, func(b *bench) {
				b.rejects("a", 1)
				s := b.turn(b.hold(put("a", 1), put("a", 2)))
				b.inject = fails("ADMIT", what, 4)
				b.fly(s, turns)
				b.holds("a", "1")
				b.Noted(journal.LeftFlight, 0)
				b.inQueue(0)
			})
		})
	}
}

// If a newer version arrives before the ADMIT, the older version leaves the flight. The older
// version is stale when its message returns.
func TestAnADMITThatIsOvertakenIsDecidedByTheRow(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		b.rejects("a", 1)
		s := b.turn(b.hold(put("a", 1), put("a", 2)))
		var other flight.State
		b.inject = at("ADMIT", func() {
			b.inject = well
			other = b.hold(put("a", 3))
		})
		s = b.turn(s)
		if r := b.Row(doc("a")); !s.Done || r.Pending != b.key("a", 3) {
			b.Errorf("done %v, row %+v, want version 1 to leave behind version 3", s.Done, r)
		}
		b.fly(other, 3)
		b.comeBack(1)
		b.holds("a", "3")
		b.inQueue(0)
	})
}

// A document is still processed if another function parks its dead version between read and
// claim.
func TestAnOlderVersionHasItsTurnBehindAParkedOne(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1), put("a", 2))
		b.inject = at("CLAIM", func() { b.Write(shard.Park(doc("a"), b.key("a", 2), now(), 1, b.Row(doc("a")))) })
		s = b.turn(s)
		b.Noted(journal.AlreadyDead, 1)
		b.Noted(journal.Claimed, 0)
		b.inject = well
		b.inQueue(1) // the message of the dead version may be deleted
		b.fly(s, 1)  // version 1 is not pending any more, so this flight admits it
		b.Noted(journal.LeftFlight, 0)
		b.holds("a", "1")
		b.inQueue(0)
	})
}
