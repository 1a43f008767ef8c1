// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink/memorysink"
)

// away makes the table fail until the test calls back.
func (b *bench) away() (back func()) {
	b.inject = usecasetest.Away(fault.Table, fault.FailBefore)
	return func() { b.inject = well }
}

// open makes a flight that receive starts while the table is unreachable and the settings allow
// outage writes. The rows are as the test left them.
func (b *bench) open(bodies ...string) flight.State {
	b.Helper()
	s := b.hold(bodies...)
	s.Outage, s.VisibleUntil = true, 0
	return s
}

// wroteOpen makes a flight that has written version 4 of document a while the table was
// unreachable.
func (b *bench) wroteOpen() flight.State {
	b.Helper()
	s := b.open(put("a", 4))
	back := b.away()
	s = b.turn(s)
	back()
	b.holds("a", "4")
	return s
}

func deleted(version shard.OrderKey) func(r *shard.Row) {
	return func(r *shard.Row) {
		*r = shard.Row{
			Doc: r.Doc, VersionClass: shard.ClassInt, Committed: version, CommittedOp: shard.Delete,
			LastWrite: 1,
		}
	}
}

func TestAnOpenFlightWritesOnceAndAcknowledgesNothing(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.open(put("a", 1), put("a", 2), put("b", 1))
		back := b.away()
		for range 4 {
			s = b.turn(s)
		}
		b.holds("a", "2")
		b.holds("b", "1")
		b.Noted(journal.OutageWrite, 2) // one note for each document
		b.requests(1, "one request for both documents")
		back()
		b.fly(s, 3)
		b.Noted(journal.Deleted, 0)
		b.inQueue(3)
		b.flightsLeft(0)
	})
}

func TestAnOpenFlightWhoseTableIsBackWritesNothing(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		b.fly(b.open(put("a", 1)), 2)
		b.requests(0, "no request, because the table was reachable")
		b.inQueue(1)
	})
}

// If the answer of a turn is lost, the state machine tries the same state again. So the first turn
// may have written, whatever its state says, and a delete that the write undid is still written
// again.
func TestAnOpenFlightWhoseWritingTurnWasLostIsComparedWithTheRows(t *testing.T) {
	usecasetest.Table(t, stage{}.play, map[string]fault.Verdict{
		"the answer of the turn is lost":                   fault.OK,
		"the invocation is killed after the sink's answer": fault.CrashAfter,
	}, func(b *bench, end fault.Verdict) {
		s := b.open(put("a", 4))
		back := b.away()
		b.inject = decide(func(op fault.Op) fault.Verdict {
			switch op.Service {
			case fault.Table:
				return fault.FailBefore
			case fault.Search:
				return end
			}
			return fault.OK
		})
		if _, _, err := b.invoke(s); err != nil {
			b.Fatal(err)
		}
		b.holds("a", "4")
		back()
		b.Change(doc("a"), deleted(b.key("a", 5)))
		b.fly(s, 3)
		b.Noted(journal.Reasserted, 1)
		b.holds("a", "")
	})
}

// Clocks of machines differ. If the clock of a machine is late, that machine finds the flight awake
// too early, and lets it sleep again.
func TestAnOpenFlightThatWokeEarlySleepsOn(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.wroteOpen()
		b.Change(doc("a"), deleted(b.key("a", 5)))
		s = b.turn(s)
		time.Sleep(time.Until(s.Wake()))
		s.Started, s.Entered = now(), now()
		b.clock = clock.Skewed{Clock: clock.System{}, By: -time.Minute}
		next, _, err := b.invoke(s)
		if in := time.Until(next.Wake()); err != nil || next.Done || in < 50*time.Second || in > 2*time.Minute {
			b.Errorf("wakes in %s (%v), done %v: want a wake in a minute", in, err, next.Done)
		}
		b.clock = clock.System{}
		b.delivers(next, 3, "a", "")
	})
}

// An outage may last longer than an execution. The flight then continues in another one.
func TestAnOpenFlightGoesOnWhileTheTableIsAway(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.open(put("a", 1))
		back := b.away()
		for !s.Done {
			s = b.turn(s)
		}
		if len(b.launched.list) != 2 || !b.launched.list[1].Outage {
			b.Fatalf("executions %+v, want a second outage execution", b.launched.list)
		}
		back()
		b.fly(b.launched.list[1], 3)
		b.requests(1, "the request of the first execution")
	})
}

// These are the cases in which a row has a newer version after the outage. A newer delete is
// written again, under a lease. For a newer put lull has no body, so a note asks for a resync.
func TestAfterAnOpenOutageTheRowsAreReasserted(t *testing.T) {
	deletes := func(b *bench) { b.Change(doc("a"), deleted(b.key("a", 5))) }
	type row struct {
		row        func(b *bench)
		race       func(b *bench)
		reasserted int
		resync     string // part of the note's text
		holds      string
	}
	usecasetest.Table(t, stage{}.play, map[string]row{
		"nothing committed": {func(*bench) {}, nil, 0, "", "4"},
		"committed itself": {
			func(b *bench) { b.Change(doc("a"), func(r *shard.Row) { r.Committed = b.key("a", 4) }) }, nil,
			0, "", "4",
		},
		"a newer put": {func(b *bench) {
			b.Change(doc("a"), func(r *shard.Row) { r.Committed, r.CommittedOp = b.key("a", 5), shard.Put })
		}, nil, 0, "the row has a newer version", "4"},
		"a newer delete": {deletes, nil, 1, "", ""},
		"a delete, and a newer version is admitted at the same time": {
			deletes,
			func(b *bench) { b.inject = at("REASSERT", func() { b.admit(put("a", 6)) }) },
			0, "could not be asserted", "4",
		},
		"a delete, and the sink is throttled": {
			deletes,
			func(b *bench) { b.sink.Script(doc("a"), throttled(), throttled()) },
			1, "", "",
		},
		"a delete, and the sink refuses it for good": {
			deletes,
			func(b *bench) { b.sink.Script(doc("a"), poison()) },
			0, "could not be asserted", "4",
		},
		"a delete, and another flight has the lease": {
			deletes,
			func(b *bench) {
				b.Change(doc("a"), func(r *shard.Row) { r.Owner, r.LeaseUntil = "t", now().Add(20*time.Second) })
			},
			1, "", "",
		},
		"a delete, and the sink stays throttled": {
			deletes,
			func(b *bench) { b.sink.Script(doc("a"), slices.Repeat([]memorysink.Answer{throttled()}, 10_000)...) },
			0, "could not be asserted", "4",
		},
		"a delete, after an operator took the version back": {
			func(b *bench) {
				deletes(b)
				b.Change(doc("a"), func(r *shard.Row) { r.TakenBack = shard.KeySetOf(b.key("a", 4)) })
			},
			nil, 1, "", "",
		},
		"a delete, and its lease was granted without an answer": {
			deletes,
			func(b *bench) { b.inject = fails("REASSERT", fault.FailAfter, 1) },
			1, "", "",
		},
		"a delete, and the write that ends its lease gets no answer": {
			deletes,
			func(b *bench) { b.inject = fails("REASSERTED", fault.FailAfter, 1) },
			1, "", "",
		},
		"a delete, and its lease cannot be ended": {
			deletes,
			func(b *bench) { b.inject = fails("REASSERTED", fault.FailBefore, 4) },
			1, "", "",
		},
	}, func(b *bench, c row) {
		s := b.wroteOpen()
		c.row(b)
		s = b.turn(s)
		if s.Done || s.Wake().Before(time.Now().Add(b.Config.Lease("search"))) {
			b.Errorf("state %+v: want the flight to wait until no outage write can be under way", s)
		}
		b.Noted(journal.Reasserted, 0)
		if c.race != nil {
			c.race(b)
		}
		before := b.Row(doc("a")).LastWrite
		for !s.Done {
			legs := len(b.launched.list)
			// An execution ends after minutes, but the outage of the sink may last longer.
			if s = b.turn(s); len(b.launched.list) > legs {
				s = b.launched.list[legs]
			}
		}
		b.Noted(journal.Reasserted, c.reasserted)
		notes := b.Notes.Of(journal.OutageResync)
		if (len(notes) == 1) != (c.resync != "") || len(notes) == 1 &&
			!strings.Contains(notes[0].Detail, c.resync) {
			b.Errorf("notes %+v, want one for a resync that says %q", notes, c.resync)
		}
		b.holds("a", c.holds)
		if r := b.Row(doc("a")); c.reasserted == 1 && (r.Owner != "" || r.LastWrite <= before) {
			b.Errorf("row %+v, want no lease left and the fence in last_write", r)
		}
		b.inQueue(1)
	})
}

// Without a row, index cannot record that a document can never be built. receive handles such a
// document later.
func TestAnOpenFlightLeavesWhatIsNotADocumentToReceive(t *testing.T) {
	stage{cfg: openBucket}.play(t, func(b *bench) {
		s := b.open(touched("a", 1)) // the test has no loader for the reference
		b.away()
		b.turn(s)
		b.requests(0, "no request for an event that is not a document")
		b.WantLetters(b.dead, 0)
	})
}

// An invocation that could not reach the table may still be writing. The wait for such a write
// begins again each time the table is unreachable. It ends by the clock, whenever the flight is
// woken.
func TestReassertingWaitsUntilNobodyCanBeWritingOpen(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.wroteOpen()
		b.Change(doc("a"), deleted(b.key("a", 5)))
		s = b.turn(s) // waits for a lease
		back := b.away()
		s = b.turn(s) // the table is unreachable again
		back()
		s = b.turn(s)
		if s.Done || s.Wake().Before(time.Now().Add(b.Config.Lease("search"))) {
			b.Errorf("state %+v, want the flight to wait as long as another lease", s)
		}
		early, _, err := b.invoke(s) // Step Functions may end a Wait early
		if err != nil || early.Done || early.WakeAt != s.WakeAt {
			b.Errorf("state %+v (%v) of a turn that was woken early, want %+v", early, err, s)
		}
		b.Noted(journal.Reasserted, 0)
		b.fly(early, 1)
		b.Noted(journal.Reasserted, 1)
		b.holds("a", "")
	})
}
