// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

func TestATurnWorksOnSoManyDocuments(t *testing.T) {
	stage{cfg: func(c *config.Config) { c.Index.MaxItemsPerTurn = 10 }}.play(t, func(b *bench) {
		var bodies []string
		for i := range 25 {
			bodies = append(bodies, put(fmt.Sprintf("doc-%02d", i), 1), put(fmt.Sprintf("doc-%02d", i), 2))
		}
		s := b.hold(bodies...)
		for _, want := range []int{10, 20, 25} {
			s = b.turn(s)
			b.Noted(journal.Committed, want)
		}
		if !s.Done {
			b.Error("not done after three turns")
		}
		b.Noted(journal.Superseded, 25) // older versions in the same flight do not count
		b.inQueue(0)
	})
}

// The notes of receive and index name the trace span of the message's sender.
func TestNotesCarryTheTraceContextOfTheirMessage(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		const context = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		s := b.holdOn(flight.Live, queue.Outgoing{
			Body: put("a", 1), Attributes: map[string]queue.Attribute{queue.AttrTrace: queue.Text(context)},
		})
		b.turn(s)
		for _, step := range []journal.Step{journal.Held, journal.Claimed, journal.Committed} {
			if notes := b.Notes.Of(step); len(notes) != 1 || notes[0].Trace != context {
				b.Errorf("%s: got %+v, want one note with the trace context", step, notes)
			}
		}
	})
}

// writes is a sink that records the size of each request, and the first document in it.
type writes struct {
	sink.Sink
	sizes *[]int
	first *[]string
}

func (w writes) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	*w.sizes = append(*w.sizes, len(ops))
	*w.first = append(*w.first, ops[0].Doc.ID())
	return w.Sink.Write(ctx, ops)
}

// lull finds a document that kills requests. Healthy documents are sent first and together, then
// quarters, then each suspected document alone, with the fewest attempts first.
func TestSuspectsAreWrittenApart(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		attempts := map[string]int64{
			"a": 9, "b": 0, "c": 2, "d": 3, "e": 2, "f": 1, "g": 2, "h": 2, "i": 0, "j": 2,
			"k": 0, "l": 4,
		}
		var bodies []string
		for id := range attempts {
			bodies = append(bodies, put(id, 1))
		}
		slices.Sort(bodies)
		s := b.hold(bodies...)
		for id, n := range attempts {
			b.Change(doc(id), func(r *shard.Row) { r.Attempts = n })
		}
		var sizes []int
		var first []string
		b.through = func(s sink.Sink) sink.Sink { return writes{s, &sizes, &first} }
		b.fly(s, 1)
		if want := []int{4, 3, 2, 1, 1, 1}; !slices.Equal(sizes, want) {
			b.Errorf("requests of %v documents, want %v", sizes, want)
		}
		if want := []string{"b", "c", "h", "d", "l", "a"}; !slices.Equal(first, want) {
			b.Errorf("first documents of the requests: %v, want %v", first, want)
		}
	})
}

func TestWhatDoesNotFitIntoAnInvocationWaitsForTheNext(t *testing.T) {
	stage{sink: memorysink.Settings{Latency: 2500 * time.Millisecond}}.play(t, func(b *bench) {
		s := b.hold(put("0", 1), put("1", 1), put("2", 1), put("3", 1), put("4", 1))
		for i := range 5 {
			b.Change(doc(i), func(r *shard.Row) { r.Attempts = 3 })
		}
		s = b.turn(s)
		// the third write ends at 7.5 s of 10 s: the time is too short for another write and its
		// commit
		b.Noted(journal.Committed, 3)
		b.Noted(journal.Claimed, 3)
		if s.Done || s.Turn != 1 || !s.Remaining.Has(3) || !s.Remaining.Has(4) || s.Remaining.Has(0) {
			b.Errorf("state %+v, want the last two documents left", s)
		}
		b.fly(s, 1)
		b.inQueue(0)
	})
}

// After the sink has reported that it is unhealthy, the rest of the turn sends no more requests to
// it.
func TestAnOpenCircuitBreakerEndsTheTurnsWriting(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1), put("b", 1), put("c", 1))
		for _, id := range []string{"a", "b", "c"} {
			b.Change(doc(id), func(r *shard.Row) { r.Attempts = 3 })
		}
		b.sink.ScriptRequests(throttled())
		s = b.turn(s)
		b.requests(1, "no more after the 429")
		b.Noted(journal.Claimed, 1)
		b.fly(s, 5)
		b.inQueue(0)
	})
}

// The flight wakes at the earliest time that one of its documents needs.
func TestTheEarliestReasonWakesTheFlight(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1), put("b", 1), put("c", 1))
		begin := s.Wake()
		for id, wait := range map[string]time.Duration{"a": 30 * time.Second, "b": 12 * time.Second, "c": time.Minute} {
			b.Change(doc(id), func(r *shard.Row) {
				r.Owner, r.Claimed, r.LeaseUntil = "somebody", r.Pending, shard.MicrosOf(begin.Add(wait))
			})
		}
		s = b.turn(s)
		if got := s.Wake().Sub(begin); got < 12*time.Second || got > 13*time.Second {
			b.Errorf("the flight wakes after %s, want 12s, the end of the first lease", got)
		}
		b.fly(s, 3)
		b.inQueue(0)
	})
}

// An Express execution lives for five minutes. Before that time is over, the flight continues in
// another execution, and only in one, however many invocations see that it must.
func TestAnExpressFlightGoesOnAsANewExecution(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		b.sink.SetDown(errors.New("connection refused"))
		s := b.hold(put("a", 1))
		begin := s.Started.Time()
		var last flight.State
		var health shard.Row // the health row before the last turn
		for legs := 1; legs < 4; legs++ {
			for !s.Done {
				if s.Wake().Sub(begin) > emulation.ExpressLimit-b.Config.Index.Timeout {
					b.Fatalf("the flight wakes %s after its execution began, which is too late", s.Wake().Sub(begin))
				}
				health = b.Row(shard.HealthRow("search"))
				last, s = s, b.turn(s)
			}
			if len(b.launched.list) != legs+1 {
				b.Fatalf("%d executions, want %d", len(b.launched.list), legs+1)
			}
			s = b.launched.list[legs]
			if s.Leg != legs || s.Flight != last.Flight || s.Turn != last.Turn+1 || s.Remaining.Empty() {
				b.Errorf("the flight continues with %+v after %+v", s, last)
			}
			b.Change(health.Doc, func(r *shard.Row) { *r = health })
			// make the same turn once more, because its answer was lost
			if again, _, err := b.invoke(last); err != nil || !again.Done {
				b.Errorf("state %+v (%v), want the old execution to end", again, err)
			}
			if len(b.launched.list) != legs+1 {
				b.Fatal("the flight was continued twice")
			}
			begin = s.Started.Time()
		}
		b.Noted(journal.Received, 1)
		b.sink.SetDown(nil)
		b.delivers(s, 3, "a", "1")
		b.inQueue(0)
		b.flightsLeft(0) // no checkpoints are left either
	})
}

// A sink may ask for a longer wait than an execution lasts. The flight then wakes in between and
// continues.
func TestAFlightNeverSleepsLongerThanItsExecutionLives(t *testing.T) {
	for _, kind := range []config.FlightKind{config.FlightExpress, config.FlightStandard, config.FlightAuto} {
		t.Run(string(kind), func(t *testing.T) {
			stage{cfg: func(c *config.Config) { c.Flight.Kind = kind }}.play(t, func(b *bench) {
				a := throttled()
				a.Outcome.RetryAfter = 30 * time.Minute
				b.sink.ScriptRequests(a)
				s := b.hold(put("a", 1))
				tripped := s.Wake()
				for turns := 0; ; turns++ {
					for legs := len(b.launched.list); s.Done && b.live.Counts().Total() > 0; {
						s = b.launched.list[legs-1]
					}
					if s.Done {
						if kind != config.FlightExpress && turns > 3 {
							b.Errorf("%d turns, want a Standard flight to sleep the whole time, because each turn costs money", turns)
						}
						if n := len(b.launched.list); kind == config.FlightAuto &&
							(n != 2 || b.launched.list[0].Kind != "express" || b.launched.list[1].Kind != "standard") {
							b.Errorf("executions %+v, want the flight to wait the half hour in a Standard execution", b.launched.list)
						}
						break
					}
					if began := s.Started.Time(); s.Kind == "express" &&
						s.Wake().Sub(began) > emulation.ExpressLimit-b.Config.Index.Timeout {
						b.Fatalf("the flight wakes %s after its execution began, when that execution has ended", s.Wake().Sub(began))
					}
					s = b.turn(s)
				}
				n := b.Notes.Of(journal.Committed)
				if len(n) != 1 || n[0].At.Sub(tripped) < 30*time.Minute || n[0].At.Sub(tripped) > 31*time.Minute {
					b.Errorf("commits %+v, want one commit half an hour after %s", n, tripped)
				}
				b.Noted(journal.Received, 1)
			})
		})
	}
}

// The setting may have changed since the execution began. The state says which kind of execution
// runs the flight.
func TestAFlightKnowsWhatRunsIt(t *testing.T) {
	for kind, other := range map[config.FlightKind]config.FlightKind{
		config.FlightExpress: config.FlightStandard, config.FlightStandard: config.FlightExpress,
	} {
		t.Run(string(kind), func(t *testing.T) {
			stage{cfg: func(c *config.Config) { c.Flight.Kind = other }}.play(t, func(b *bench) {
				a := throttled()
				a.Outcome.RetryAfter = 30 * time.Minute
				b.sink.ScriptRequests(a)
				s := b.hold(put("a", 1))
				s.Kind, s.Started = kind, shard.MicrosOf(s.Wake())
				s = b.turn(s)
				if kind == config.FlightStandard {
					if wait := s.Wake().Sub(b.clock.Now()); s.Done || wait < 30*time.Minute {
						b.Errorf("done %v, sleeps for %s: want a Standard execution to sleep the whole time", s.Done, wait)
					}
					return
				}
				// It continues in an execution of the kind in the setting.
				if !s.Done || len(b.launched.list) != 2 || b.launched.list[1].Kind != other {
					b.Errorf("got %+v and executions %+v, want a second execution", s, b.launched.list)
				}
			})
		})
	}
}

// A Standard execution may have 25,000 events, and each turn uses about seven of them.
func TestAStandardFlightGoesOnBeforeItsEventsAreUsedUp(t *testing.T) {
	stage{cfg: func(c *config.Config) { c.Flight.Kind = config.FlightStandard }}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		b.leased(doc("a"), time.Hour)
		s.Turn = 1998
		if s = b.turn(s); s.Done {
			b.Fatal("the flight was continued too early")
		}
		s, _, err := b.invoke(s)
		if err != nil || !s.Done || len(b.launched.list) != 2 || b.launched.list[1].Turn != 2000 {
			b.Errorf("state %+v (%v), executions %+v, want the flight to continue in a second execution", s, err,
				b.launched.list)
		}
	})
}

func TestAContinuationThatFails(t *testing.T) {
	late := func(b *bench) flight.State {
		s := b.hold(put("a", 1))
		b.leased(doc("a"), 12*time.Second)
		s.Started = now().Add(10*time.Second - b.Config.Flight.ContinueAfter)
		return s
	}
	t.Run("without a checkpoint is tried again", func(t *testing.T) {
		stage{cfg: func(c *config.Config) { c.Flight.Kind = config.FlightExpress }}.play(t, func(b *bench) {
			s := late(b)
			// later than the end of the execution
			b.Change(doc("a"), func(r *shard.Row) { r.LeaseUntil = now().Add(2 * time.Minute) })
			b.inject = fails("PutNext", fault.FailBefore, 4)
			if s = b.turn(s); s.Done || len(b.launched.list) != 1 || time.Until(s.Wake()) > 6*time.Second {
				b.Errorf("state %+v, want another turn of this execution soon", s)
			}
			if s = b.turn(s); !s.Done || len(b.launched.list) != 2 {
				b.Errorf("state %+v, want the flight to continue in a second execution", s)
			}
			b.delivers(b.launched.list[1], 2, "a", "1")
		})
	})
	t.Run("whose checkpoint got no answer continues", func(t *testing.T) {
		stage{}.play(t, func(b *bench) {
			s := late(b)
			b.inject = fails("PutNext", fault.FailAfter, 1)
			if s = b.turn(s); !s.Done || len(b.launched.list) != 2 {
				b.Errorf("state %+v, want the flight to continue in a second execution", s)
			}
			b.delivers(b.launched.list[1], 2, "a", "1")
		})
	})
	t.Run("without an execution leaves the messages to redelivery", func(t *testing.T) {
		stage{}.play(t, func(b *bench) {
			s := late(b)
			b.inject = fails("StartExecution", fault.FailBefore, 10)
			if s = b.turn(s); !s.Done || len(b.launched.list) != 1 {
				b.Errorf("state %+v, want the flight ended", s)
			}
			b.Noted(journal.LaunchLost, 1)
			b.inject = well
			time.Sleep(time.Minute)
			b.delivers(b.receive(flight.Live), 2, "a", "1")
			b.inQueue(0)
		})
	})
}

func TestAFlightWithoutManifestIsDone(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		if err := b.flights.Delete(b.Context(), s.Flight); err != nil {
			b.Fatal(err)
		}
		b.fly(s, 1)
		b.inQueue(1) // the message is left to redelivery
	})
}

// Without the manifest the turn can do nothing, so the state machine tries the same turn again.
func TestAManifestThatCannotBeReadFailsTheTurn(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		b.inject = fails("GetManifest", fault.FailBefore, 4)
		time.Sleep(time.Until(s.Wake()))
		next, _, err := b.invoke(s)
		if !errors.Is(err, fault.ErrInjected) || next.Done || next.Turn != s.Turn {
			b.Errorf("state %+v, error %v, want the same turn again", next, err)
		}
		b.inject = fails("GetManifest", fault.FailBefore, 3) // one failure less is not a reason to wait for a lease
		b.delivers(s, 1, "a", "1")
	})
}

// If deletions fail at the end, prune deletes the objects later. The flight is still done.
func TestAManifestThatCannotBeDeletedIsLeftToPrune(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		b.inject = fails("DeleteManifest", fault.FailBefore, 1)
		b.fly(s, 1)
		b.Noted(journal.Ended, 1)
		b.Noted(journal.CallFailed, 1)
	})
}

// Row 54 of docs/faults.md: an unknown schema is left to redelivery.
func TestUnknownSchemaIsLeftToRedelivery(t *testing.T) {
	usecasetest.Table(t, stage{}.play, map[string]func(s *flight.State, m *flight.Manifest){
		"state":    func(s *flight.State, _ *flight.Manifest) { s.Schema = flight.SchemaVersion + 1 },
		"manifest": func(_ *flight.State, m *flight.Manifest) { m.Schema = flight.SchemaVersion + 1 },
	}, func(b *bench, newer func(s *flight.State, m *flight.Manifest)) {
		s := b.hold(put("a", 1))
		m := b.manifest(s.Flight)
		newer(&s, m)
		if err := b.flights.Put(b.Context(), m); err != nil {
			b.Fatal(err)
		}
		// The flight ends with an alarm and nothing else, and another flight writes its message.
		before := b.Row(doc("a"))
		b.fly(s, 1)
		b.Noted(journal.Schema, 1)
		b.Noted(journal.Deleted, 0)
		if r := b.Row(doc("a")); r != before || b.sink.Counts().Requests != 0 {
			b.Errorf("row %+v, want it untouched and nothing written: %+v", r, before)
		}
		b.flightsLeft(1) // the manifest stays for the code that can read it
		time.Sleep(b.Config.Queues.Visibility)
		b.delivers(b.receive(flight.Live), 2, "a", "1")
		b.inQueue(0)
	})
}

// Row 49 of docs/faults.md: lull believes nothing in the row of a newer build, neither in the row
// as read nor in the row that a refused claim returns.
func TestRowOfANewerSchemaIsLeftAlone(t *testing.T) {
	newer := func(b *bench) {
		b.Change(doc("a"), func(r *shard.Row) { r.Schema, r.Committed = shard.SchemaVersion+1, b.key("a", 9) })
	}
	usecasetest.Table(t, stage{}.play, map[string]func(b *bench){
		"as read":               newer,
		"as the claim finds it": func(b *bench) { b.inject = at("CLAIM", func() { newer(b) }) },
	}, func(b *bench, when func(b *bench)) {
		s := b.hold(put("a", 1), put("a", 2), put("b", 1))
		when(b)
		b.delivers(s, 1, "a", "")
		b.holds("b", "1")
		b.Noted(journal.Schema, 2)
		b.Noted(journal.LeftFlight, 2)
		if r := b.Row(doc("a")); r.Owner != "" || r.Attempts != 0 || r.Pending == "" {
			b.Errorf("row %+v, want it untouched", r)
		}
		b.queued(2, 0, "both messages are given back")
	})
}

func TestWhileTheTableCannotBeReadTheFlightWaits(t *testing.T) {
	t.Run("the first time", func(t *testing.T) {
		stage{}.play(t, func(b *bench) {
			s := b.hold(put("a", 1))
			// one failed read of the health row, then the reads of the document rows with all their
			// tries
			b.inject = fails("Read", fault.FailBefore, 1+4)
			if s = b.turn(s); s.Done || b.sink.Counts().Requests != 0 {
				b.Errorf("state %+v, want the flight to wait", s)
			}
			b.delivers(s, 1, "a", "1")
		})
	})
	t.Run("once more consistently", func(t *testing.T) {
		stage{}.play(t, func(b *bench) {
			s := b.hold(put("a", 1), put("b", 1))
			// This row is believed only from a consistent read.
			b.Change(doc("a"), func(r *shard.Row) { r.Pending, r.Dead = "", r.Pending })
			reads := 0
			b.inject = decide(func(op fault.Op) fault.Verdict {
				if op.Call != "Read" {
					return fault.OK
				}
				if reads++; reads > 2 && reads <= 6 {
					return fault.FailBefore
				}
				return fault.OK
			})
			s = b.turn(s)
			b.holds("b", "1") // the row of document b is believed
			if s.Done || len(b.Notes.Of(journal.AlreadyDead)) != 0 {
				b.Errorf("state %+v, want the doubtful document to wait", s)
			}
			b.fly(s, 1)
			b.Noted(journal.AlreadyDead, 1)
			b.inQueue(0)
		})
	})
}

func TestOneProberPingsASinkThatWasUnhealthy(t *testing.T) {
	open := func(b *bench) {
		b.Write(shardtest.Put(shard.Row{Doc: shard.HealthRow("search"), OpenUntil: now().Add(time.Second), Level: 3}))
	}
	health := func(b *bench) shard.Row { return b.Row(shard.HealthRow("search")) }
	type row struct {
		race    func(b *bench)
		pings   int64
		written bool
	}
	usecasetest.Table(t, stage{}.play, map[string]row{
		"well again":                          {func(*bench) {}, 1, true},
		"still down":                          {func(b *bench) { b.sink.SetDown(errors.New("refused")) }, 1, false},
		"healthy again, but pings are denied": {denyPings, 1, true},
		"another flight probes": {func(b *bench) {
			b.inject = at("PROBE", func() { b.Write(shard.Probe("search", now(), now().Add(time.Second))) })
		}, 0, false},
		"tripped again during the ping": {func(b *bench) { b.inject = at("CLOSE", func() { open(b) }) }, 1, false},
		"the result of the ping cannot be written": {
			func(b *bench) { b.inject = fails("CLOSE", fault.FailBefore, 4) }, 1,
			false,
		},
		"the ping is a throttled request": {func(b *bench) { b.inject = fails("ping", fault.Throttle, 1) }, 0, false},
	}, func(b *bench, c row) {
		s := b.hold(put("a", 1))
		open(b)
		c.race(b)
		s = b.turn(s)
		if n := b.sink.Counts().Pings; n != c.pings {
			b.Errorf("%d pings, want %d", n, c.pings)
		}
		if got := b.sink.Counts().Requests == 1; got != c.written || s.Done != c.written {
			b.Errorf("written %v, done %v, want %v", got, s.Done, c.written)
		}
		if h := health(b); (h.OpenUntil == 0) != c.written {
			b.Errorf("health %+v, want the circuit closed: %v", h, c.written)
		}
		b.Noted(journal.Claimed, len(b.Notes.Of(journal.Committed)))
		b.sink.SetDown(nil)
		b.inject = well
		b.delivers(s, 5, "a", "1")
	})
}

// A paused sink gets no requests: no document is claimed and no flight pings. Neither an open
// circuit nor a probe ends the pause.
func TestNothingGoesToASinkThatIsPaused(t *testing.T) {
	type row struct {
		before func(b *bench)
		pings  int64
	}
	usecasetest.Table(t, stage{}.play, map[string]row{
		"before the turn": {func(b *bench) { b.Write(shard.Pause("search", now(), "ann", "")) }, 0},
		"whose circuit may be probed": {func(b *bench) {
			b.Write(shard.Trip("search", now(), now().Add(time.Millisecond), 3))
			time.Sleep(time.Second)
			b.Write(shard.Pause("search", now(), "ann", ""))
		}, 0},
		"while a flight pings": {func(b *bench) {
			b.Write(shard.Trip("search", now(), now().Add(time.Millisecond), 3))
			b.inject = at("CLOSE", func() { b.Write(shard.Pause("search", now(), "ann", "")) })
		}, 1},
	}, func(b *bench, c row) {
		s := b.hold(put("a", 1))
		c.before(b)
		s = b.turn(s)
		b.inject = well
		s = b.turn(s)
		b.Noted(journal.Claimed, 0)
		if n := b.sink.Counts().Pings; n != c.pings || b.Row(shard.HealthRow("search")).PausedBy != "ann" {
			b.Errorf("%d pings, want %d; health %+v, want it paused", n, c.pings, b.Row(shard.HealthRow("search")))
		}
		if wait := s.Wake().Sub(now().Time()); s.Done || wait > 20*time.Second {
			b.Errorf("done %v, wakes in %s: want the flight to look again within seconds", s.Done, wait)
		}
		b.Write(shard.Resume("search", b.Row(shard.HealthRow("search")), now(), b.Config.Retry.OpenFor))
		b.delivers(s, 5, "a", "1")
	})
}

// After a minute no flight waits for a paused sink, not even the flight that opened its circuit.
func TestFlightsEndWhileTheirSinkIsPaused(t *testing.T) {
	usecasetest.Table(t, stage{}.play, map[string]bool{
		"the flight opened the circuit": true, "another flight": false,
	}, func(b *bench, opened bool) {
		s := b.hold(put("a", 1))
		if opened {
			b.sink.SetDown(errors.New("refused"))
			s = b.turn(s)
			b.sink.SetDown(nil)
		}
		b.Write(shard.Pause("search", now(), "ann", ""))
		for turns := 0; !s.Done; turns++ {
			if s = b.turn(s); turns > 10 {
				b.Fatal("the flight does not end")
			}
		}
		b.Noted(journal.Away, 1)
		if n := b.Notes.Of(journal.Away)[0]; !strings.Contains(n.Detail, "paused") ||
			time.Until(n.Until) < 15*time.Second || time.Until(n.Until) > 30*time.Second {
			b.Errorf("notes %+v, want the reason, and a wait of a third of the pause", n)
		}
		b.Noted(journal.Committed, 0)
	})
}

// denyPings makes the sink refuse pings, as a sink does for credentials that may only write.
func denyPings(b *bench) { b.through = func(s sink.Sink) sink.Sink { return pingless{s} } }

type pingless struct{ sink.Sink }

func (p pingless) Ping(ctx context.Context) error {
	return errors.Join(p.Sink.Ping(ctx), sink.ErrDenied)
}

// If pings are denied, lull writes one document to find out whether the sink is back, and not all
// waiting documents.
func TestWhereNobodyMayPingADocumentAsks(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(many(20, put, "d")...)
		b.Write(shardtest.Put(shard.Row{Doc: shard.HealthRow("search"), OpenUntil: now().Add(time.Second), Level: 3}))
		denyPings(b)
		b.sink.ScriptRequests(memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Throttled, Status: 403}})
		s = b.turn(s)
		b.Noted(journal.Claimed, 1)
		b.requests(1, "one request was refused, so no other is sent")
		if h := b.Row(shard.HealthRow("search")); h.OpenUntil == 0 || h.Level != 4 {
			b.Errorf("health %+v, want the circuit open, one level higher", h)
		}
		s = b.turn(s)
		if n := len(b.Notes.Of(journal.Committed)); n == 0 || n > 3 {
			b.Errorf("the probe wrote %d documents, want a few", n)
		}
		b.fly(s, 30)
		b.inQueue(0)
	})
}

// While a sink is away, its messages wait in the queue. Only one flight stays and probes.
func TestAFlightLeavesASinkThatIsAwayForLong(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		away := func(level int64, open time.Duration) {
			b.Write(shardtest.Put(shard.Row{Doc: shard.HealthRow("search"), OpenUntil: now().Add(open), Level: level}))
		}
		b.sink.SetDown(errors.New("refused"))
		prober, waits, leaves := b.hold(put("a", 1)), b.hold(put("b", 1)), b.hold(put("c", 1))
		away(3, 10*time.Second)
		if waits = b.turn(waits); waits.Done {
			b.Error("the flight ended although the sink was down only for seconds")
		}
		away(11, 5*time.Second)
		time.Sleep(6 * time.Second)
		if prober = b.turn(prober); prober.Done {
			b.Fatal("the flight that must probe ended")
		}
		if leaves = b.turn(leaves); !leaves.Done {
			b.Fatal("the flight waits in its execution for a sink that is away, want it to end")
		}
		b.Noted(journal.Away, 1)
		if d := time.Until(b.Notes.Of(journal.Away)[0].Until); d < 5*time.Second || d > 12*time.Second {
			b.Errorf("the messages wait for %s, want until 2 to 4 s after the next ping", d)
		}
		b.queued(0, 3, "three messages wait")
		if _, err := b.flights.Get(b.Context(), leaves.Flight); !errors.Is(err, flight.ErrNotFound) {
			b.Errorf("manifest of the flight: %v, want it deleted", err)
		}
		for range 2 { // this takes minutes
			if prober = b.turn(prober); prober.Done {
				b.Fatal("the flight that must probe ended")
			}
		}
		b.sink.SetDown(nil)
		b.delivers(prober, 3, "a", "1")
		time.Sleep(4 * time.Minute)
		b.fly(b.receive(flight.Live), 5)
		b.inQueue(0)
		b.holds("b", "1")
		b.holds("c", "1")
	})
}

// A failure of one document neither opens the circuit nor lowers the pace. A request without any
// answer opens the circuit. A request of which the sink applied nothing also opens the circuit, if
// a lower pace would not help.
func TestOnlyTheSinksOwnTroubleOpensTheCircuit(t *testing.T) {
	throttled := func(status int, after time.Duration) memorysink.Answer {
		return memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Throttled, Status: status, RetryAfter: after}}
	}
	unknown := memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Unknown, Status: 503}}
	type row struct {
		script func(b *bench)
		open   bool
		paced  int64
	}
	usecasetest.Table(t, stage{}.play, map[string]row{
		"one of two unknown":   {script: func(b *bench) { b.sink.Script(doc("a"), unknown) }},
		"both unknown":         {script: func(b *bench) { b.sink.ScriptRequests(unknown) }, open: true},
		"one of two throttled": {script: func(b *bench) { b.sink.Script(doc("a"), throttled(429, 0)) }, paced: 1000},
		"one of two throttled, for a minute": {
			script: func(b *bench) { b.sink.Script(doc("a"), throttled(429, time.Minute)) }, paced: 1000,
		},
		"both throttled":              {script: func(b *bench) { b.sink.ScriptRequests(throttled(429, 0)) }, paced: 500},
		"both throttled, of a queue":  {script: func(b *bench) { b.sink.ScriptRequests(throttled(503, 0)) }, paced: 500},
		"both throttled for a minute": {script: func(b *bench) { b.sink.ScriptRequests(throttled(429, time.Minute)) }, open: true},
		"both throttled by a refusal of the credentials": {
			script: func(b *bench) { b.sink.ScriptRequests(throttled(403, 0)) }, open: true,
		},
		"both throttled without a status": {script: func(b *bench) { b.sink.ScriptRequests(throttled(0, 0)) }, open: true},
		"all throttled at the slowest pace": {script: func(b *bench) {
			b.Write(shardtest.Put(shard.Row{Doc: shard.HealthRow("search"), Rate: 500, RateAt: now()}))
			b.sink.Script(doc("a"), throttled(429, 0))
			b.sink.Script(doc("b"), throttled(429, 0))
		}, open: true, paced: 500},
		"one of two rejected": {script: func(b *bench) {
			b.sink.Script(doc("a"), memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Rejected}})
		}},
		"both refused": {script: func(b *bench) {
			b.sink.ScriptRequests(memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Refused}})
		}},
		"a suspected document alone, unknown": {script: func(b *bench) {
			b.Change(doc("a"), func(r *shard.Row) { r.Attempts = 3 })
			b.sink.Script(doc("a"), unknown)
		}},
		"a new document alone, unknown": {script: func(b *bench) {
			b.Change(doc("b"), func(r *shard.Row) { r.Attempts = 3 })
			b.sink.Script(doc("a"), unknown)
		}, open: true},
	}, func(b *bench, c row) {
		s := b.hold(put("a", 1), put("b", 1))
		c.script(b)
		b.turn(s)
		health := b.Row(shard.HealthRow("search"))
		if got := health.OpenUntil != 0; got != c.open {
			b.Errorf("circuit open: %v, want %v", got, c.open)
		}
		if health.Rate != c.paced {
			b.Errorf("pace %d, want %d thousandths of a document a second", health.Rate, c.paced)
		}
	})
}
