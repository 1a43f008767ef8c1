// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// An earlier version of lull believed any clock. A clock that was
// a month ahead may have left its time in the health row. This time must not keep a sink closed for
// a month, for either lane.
func TestACircuitThatAWrongClockOpenedIsProbed(t *testing.T) {
	const month = 30 * 24 * time.Hour
	for name, row := range map[string]func(r *shard.Row){
		"open until then":   func(r *shard.Row) { r.OpenUntil = now().Add(month) },
		"probed until then": func(r *shard.Row) { r.OpenUntil, r.ProbeUntil = now().Add(-time.Hour), now().Add(month) },
		"both": func(r *shard.Row) {
			r.OpenUntil, r.ProbeUntil = now().Add(month), now().Add(2*month)
		},
	} {
		for _, lane := range []flight.Lane{flight.Live, flight.Bulk} {
			t.Run(name+", "+string(lane), func(t *testing.T) {
				stage{}.play(t, func(b *bench) {
					r := shard.Row{Doc: shard.HealthRow("search"), Level: 9}
					row(&r)
					b.Write(shardtest.Put(r))
					b.sink.SetDown(errors.New("refused"))
					s := b.holdOn(lane, queue.Outgoing{Body: put("a", 1)})
					if s.Done {
						b.Fatal("nothing is held")
					}
					s = b.turn(s)
					if h := b.Row(shard.HealthRow("search")); h.OpenUntil == 0 || h.OpenUntil > now().Add(time.Hour) {
						b.Errorf("open until %s, want it open for a minute", h.OpenUntil.Time())
					}
					b.sink.SetDown(nil)
					b.delivers(s, 10, "a", "1")
				})
			})
		}
	}
}

// A wrong clock does not block an enricher either, even if the table does not say who has opened
// the enricher's circuit since.
func TestAnEnricherIsNotLeftForAsLongAsAWrongClockSays(t *testing.T) {
	stage{cfg: enriched}.play(t, func(b *bench) {
		b.enricher = &service{whole: func([]string) (string, error) {
			return "", &enrich.Failure{Reason: "refused"}
		}}
		s := b.hold(titled("a", 1))
		b.Write(shardtest.Put(shard.Row{
			Doc: shard.HealthRow(enrich.HealthName("content")), OpenUntil: now().Add(30 * 24 * time.Hour), Level: 1,
		}))
		b.inject = fails("TRIP", fault.FailBefore, 4)
		if s = b.turn(s); s.Done || time.Until(s.Wake()) > time.Hour {
			b.Errorf("done %v, wakes in %s, want the flight to ask again within minutes", s.Done, time.Until(s.Wake()))
		}
		b.Noted(journal.Released, 1)
	})
}

// A flight that opened the circuit stays, because it must probe right after the circuit's open
// time. A bulk flight probes at that time too, because no live flight is left. The document of the
// flight waits longer, because the outcome of its write is unknown.
func TestAFlightThatOpenedTheCircuitProbesInTime(t *testing.T) {
	for _, lane := range []flight.Lane{flight.Live, flight.Bulk} {
		t.Run(string(lane), func(t *testing.T) {
			stage{}.play(t, func(b *bench) {
				s := b.holdOn(lane, queue.Outgoing{Body: put("a", 1)})
				b.sink.SetDown(errors.New("refused"))
				s = b.turn(s) // the request of this turn gets no answer
				b.probes(&s, 12)
			})
		})
	}
}

// probes makes turns of a flight until it has sent the given number of pings, and checks that each
// ping comes in time.
func (b *bench) probes(s *flight.State, pings int64) {
	b.Helper()
	for n := range pings {
		open, before := b.Row(shard.HealthRow("search")).OpenUntil, b.sink.Counts().Pings
		for *s = b.turn(*s); now() <= open; *s = b.turn(*s) {
		}
		if late := now().Sub(open); late > 2*time.Second || b.sink.Counts().Pings != before+1 || s.Done {
			b.Fatalf("ping %d: done %t, %s after its due time, %d pings: want the next ping in time", n, s.Done, late,
				b.sink.Counts().Pings-before)
		}
	}
}

// Newer versions replace everything that the flight held. The flight still stays, because no other
// flight would probe in time. It ends once the sink is back.
func TestAFlightThatOpenedTheCircuitProbesAlthoughItsDocumentsAreDone(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		b.sink.SetDown(errors.New("refused"))
		s = b.turn(s)
		b.Change(doc("a"), func(r *shard.Row) { r.Committed, r.Owner, r.LeaseUntil = r.Pending, "", 0 })
		b.probes(&s, 4)
		b.queued(0, 0, "the message is deleted")
		b.sink.SetDown(nil)
		for turns := 0; !s.Done; turns++ {
			if s = b.turn(s); turns > 3 {
				b.Fatal("the flight does not end")
			}
		}
		if h := b.Row(shard.HealthRow("search")); h.OpenUntil != 0 {
			b.Errorf("health %+v, want the circuit closed", h)
		}
	})
}

// hanging is a sink that never answers a ping.
type hanging struct{ sink.Sink }

func (hanging) Ping(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// A ping that hangs ends after two seconds, and this time counts towards the next ping. Each eighth
// ping has the sink's whole deadline, for sinks that are slow.
func TestAPingThatHangsDelaysTheNextOneLittle(t *testing.T) {
	usecasetest.Table(t, stage{}.play, map[string]struct {
		level int64
		took  time.Duration
	}{
		"the third ping": {3, 2 * time.Second}, "the eighth ping": {8, 6 * time.Second}, "the ninth ping": {9, 2 * time.Second},
	}, func(b *bench, c struct {
		level int64
		took  time.Duration
	},
	) {
		s := b.hold(put("a", 1))
		b.Write(shardtest.Put(shard.Row{Doc: shard.HealthRow("search"), OpenUntil: now().Add(-1), Level: c.level}))
		b.through = func(s sink.Sink) sink.Sink { return hanging{s} }
		time.Sleep(time.Until(s.Wake()))
		began := now()
		b.turn(s)
		if took := now().Sub(began); took < c.took || took > c.took+time.Second/2 {
			b.Errorf("a turn with a ping that hangs took %s, want %s", took, c.took)
		}
		h := b.Row(shard.HealthRow("search"))
		open := h.OpenUntil.Sub(began)
		if h.Level != c.level+1 || open < 7*time.Second || open > 7*time.Second+time.Second/2 {
			b.Errorf("level %d, open until %s after the ping began, want 7 s", h.Level, open)
		}
	})
}

// The flight that opened the circuit stays to probe, even if the answer to its write was lost.
func TestAFlightWhoseTripGotNoAnswerProbes(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		b.sink.SetDown(errors.New("refused"))
		b.inject = fails("TRIP", fault.FailAfter, 1)
		s = b.turn(s)
		if h := b.Row(shard.HealthRow("search")); h.OpenUntil == 0 || s.Probes != h.OpenUntil {
			b.Errorf("the circuit is open until %d, the flight probes at %d", h.OpenUntil, s.Probes)
		}
		b.Noted(journal.CircuitOpened, 1)
	})
}

// Another flight may open the circuit first. This flight then follows the row that the other flight
// wrote. The row says how long no flight asks the sink, and whether messages wait in flights.
func TestWhoComesSecondToOpenACircuitGoesByIt(t *testing.T) {
	opened := func(b *bench, row shard.DocID, long time.Duration, level int64) {
		b.inject = at("TRIP", func() {
			b.Write(shardtest.Put(shard.Row{Doc: row, OpenUntil: now().Add(long), Level: level}))
		})
	}
	t.Run("of a sink", func(t *testing.T) {
		stage{}.play(t, func(b *bench) {
			s := b.hold(put("a", 1))
			b.sink.SetDown(errors.New("refused"))
			opened(b, shard.HealthRow("search"), time.Minute, 7)
			if s = b.turn(s); !s.Done {
				b.Errorf("state %+v, want the flight to end because the sink is away for long", s)
			}
			b.Noted(journal.Away, 1)
		})
	})
	t.Run("of an enricher", func(t *testing.T) {
		stage{cfg: enriched}.play(t, func(b *bench) {
			b.enricher = &service{whole: func([]string) (string, error) {
				return "", &enrich.Failure{Reason: "refused"}
			}}
			s := b.hold(titled("a", 1))
			opened(b, shard.HealthRow(enrich.HealthName("content")), 30*time.Second, 1)
			if s = b.turn(s); s.Done || time.Until(s.Wake()) < 29*time.Second {
				b.Errorf("done %v, wakes in %s, want the flight to wait for half a minute", s.Done, time.Until(s.Wake()))
			}
		})
	})
	t.Run("while this flight slows down", func(t *testing.T) {
		stage{}.play(t, func(b *bench) {
			s := b.hold(put("a", 1), put("b", 1))
			for _, id := range []string{"a", "b"} {
				b.Change(doc(id), func(r *shard.Row) { r.Attempts = 3 }) // so the document is sent alone
			}
			b.sink.SetRule(func(sink.Op) (memorysink.Answer, bool) {
				b.Write(shardtest.Put(shard.Row{
					Doc: shard.HealthRow("search"), OpenUntil: now().Add(time.Minute), Level: 3,
				}))
				return throttled(), true
			})
			b.turn(s)
			b.requests(1, "no more requests go to a sink whose circuit is open")
			b.Noted(journal.Slowed, 0)
		})
	})
}
