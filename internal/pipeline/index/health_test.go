package index_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/enrich"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
	"github.com/lullhq/lull/sink"
)

// An earlier version believed any clock. What one that was a month ahead left in the health row
// must not keep a sink shut for a month, for either lane.
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

// The same of an enricher, also where the table does not say who has opened its circuit since.
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
			b.Errorf("done %v, wakes in %s, want it to ask again within minutes", s.Done, time.Until(s.Wake()))
		}
		b.Noted(journal.Released, 1)
	})
}

// A flight that opened the circuit stays because it probes. A bulk flight does so too: those of the
// live lane have left.
func TestABulkFlightThatOpenedTheCircuitProbesInTime(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.holdOn(flight.Bulk, queue.Outgoing{Body: put("a", 1)})
		b.sink.SetDown(errors.New("refused"))
		s = b.turn(s) // its request gets no answer
		for n := range int64(7) {
			open := b.Row(shard.HealthRow("search")).OpenUntil
			s = b.turn(s)
			if late := now().Sub(open); late > 20*time.Second || b.sink.Counts().Pings != n+1 {
				b.Fatalf("%s after its time, %d pings: want the next one", late, b.sink.Counts().Pings)
			}
		}
		if s.Done {
			b.Error("it has left: nobody probes")
		}
	})
}

// Who opened the circuit stays to probe, although the answer to its write was lost.
func TestAFlightWhoseTripGotNoAnswerProbes(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		b.sink.SetDown(errors.New("refused"))
		b.inject = fails("TRIP", fault.FailAfter, 1)
		s = b.turn(s)
		if h := b.Row(shard.HealthRow("search")); h.OpenUntil == 0 || s.Probes != h.OpenUntil {
			b.Errorf("open until %d, it probes at %d", h.OpenUntil, s.Probes)
		}
		b.Noted(journal.CircuitOpened, 1)
	})
}

// Another flight may open the circuit first. What it wrote counts for this one, too: how long
// nothing is asked, and whether anything waits in flights.
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
				b.Errorf("state %+v, want the flight to leave a sink that is away for long", s)
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
				b.Errorf("done %v, wakes in %s, want it to wait for half a minute", s.Done, time.Until(s.Wake()))
			}
		})
	})
	t.Run("while this one slows down", func(t *testing.T) {
		stage{}.play(t, func(b *bench) {
			s := b.hold(put("a", 1), put("b", 1))
			for _, id := range []string{"a", "b"} {
				b.Change(doc(id), func(r *shard.Row) { r.Attempts = 3 }) // a request of its own
			}
			b.sink.SetRule(func(sink.Op) (memory.Answer, bool) {
				b.Write(shardtest.Put(shard.Row{
					Doc: shard.HealthRow("search"), OpenUntil: now().Add(time.Minute), Level: 3,
				}))
				return throttled(), true
			})
			b.turn(s)
			b.requests(1, "nothing more goes to a sink whose circuit is open")
			b.Noted(journal.Slowed, 0)
		})
	})
}
