// SPDX-License-Identifier: Apache-2.0

package prune_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/config"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink/memorysink"
)

// orphan is the shortest age of a flight's newest object at which prune examines the flight: 5
// minutes + cap + lease + visibility.
const orphan = 5*time.Minute + 40*time.Second + 13*time.Second + 40*time.Second

// silent is how long after the last sign of life in its row an event counts as stuck. Besides
// orphan, it contains a short outage of the table, and the time for which receive holds messages
// back.
const silent = orphan + 30*time.Minute

func TestOrphanedFlightGoesWhenItsEventsAreDone(t *testing.T) {
	t.Parallel()
	type row struct {
		then  func(b *bench, id flight.ID)
		age   time.Duration
		gone  bool
		stuck bool
		waits bool
	}
	usecasetest.Table(t, play, map[string]row{
		"young":     {func(b *bench, id flight.ID) { b.commit(doc(1), 2, shard.Put) }, orphan, false, false, false},
		"committed": {func(b *bench, id flight.ID) { b.commit(doc(1), 2, shard.Put) }, orphan + 1, true, false, false},
		"a newer version committed": {
			func(b *bench, id flight.ID) { b.commit(doc(1), 3, shard.Put) }, orphan + 1, true,
			false, false,
		},
		"dead": {func(b *bench, id flight.ID) { b.park(doc(1), 2) }, orphan + 1, true, false, false},
		"the dead letter is parked, but the row marks another version dead": {func(b *bench, id flight.ID) {
			m := b.manifest(id).Records[0].Message
			l := deadletter.New(m, deadletter.Refusals, "", doc(1), b.key(2), 0, time.Now())
			l.Sink = "search"
			if _, err := b.Letters.Park(b.Context(), l); err != nil {
				b.Fatal(err)
			}
			b.park(doc(1), 2)
			b.admit(doc(1), 3)
			b.park(doc(1), 3)
		}, orphan + 1, true, false, false},
		"an operator took the version back, and another version died since": {func(b *bench, id flight.ID) {
			b.commit(doc(1), 2, shard.Put)
			b.Change(doc(1), func(r *shard.Row) { r.Committed, r.TakenBack = b.key(1), shard.KeySetOf(r.Committed) })
			b.park(doc(1), 3)
		}, silent + 1, true, false, false},
		"only a checkpoint of the flight is left": {func(b *bench, id flight.ID) {
			if err := b.flights.Delete(b.Context(), id); err != nil {
				b.Fatal(err)
			}
			if _, err := b.flights.Continue(b.Context(), id, 1, flight.State{Flight: id}); err != nil {
				b.Fatal(err)
			}
		}, orphan + 1, true, false, false},
		"pending, a short time ago": {func(*bench, flight.ID) {}, orphan + 1, false, false, true},
		"a row that shows nothing, a short time ago": {
			func(b *bench, _ flight.ID) { b.Write(shard.Write{Doc: doc(1), Drop: true}) }, silent - 1, false, false,
			true,
		},
		"pending, and no flight works on it": {func(*bench, flight.ID) {}, silent + 1, false, true, false},
		"pending, in a row of newer code": {func(b *bench, _ flight.ID) {
			b.Change(doc(1), func(r *shard.Row) { r.Schema = shard.SchemaVersion + 1 })
		}, silent + 1, false, false, true},
		"pending, and a claim that got no answer": {func(b *bench, id flight.ID) {
			time.Sleep(orphan)
			b.claim(doc(1), 2)
		}, silent - 1, false, false, true},
		"an older version committed": {func(b *bench, id flight.ID) {
			b.Write(shard.Write{Doc: doc(1), Drop: true})
			b.commit(doc(1), 1, shard.Put)
		}, silent + 1, false, true, false},
		"pending, and the sink is down": {func(b *bench,
			id flight.ID,
		) {
			b.Write(shard.Trip("search", now(), now().Add(time.Hour), 1))
		}, orphan + 1, false, false, true},
	}, func(b *bench, tt row) {
		id := b.flight(entry{doc(1), 2})
		tt.then(b, id)
		time.Sleep(tt.age)
		rep := b.run()
		if got := len(b.stored()) == 0; got != tt.gone {
			b.Errorf("gone: %t, want %t", got, tt.gone)
		}
		if got := len(rep.Flights.Stuck) == 1; got != tt.stuck ||
			len(b.Notes.Of(journal.Stuck)) == 1 != tt.stuck {
			b.Errorf("report %+v, want stuck %t", rep.Flights, tt.stuck)
		}
		if got := rep.Flights.Waiting == 1; got != tt.waits {
			b.Errorf("report %+v, want waiting %t", rep.Flights, tt.waits)
		}
	})
}

func TestFlightIsStuckOnlyAfterTheSinkHasBeenWellForAsLong(t *testing.T) {
	play(t, func(b *bench) {
		b.flight(entry{doc(1), 1})
		b.Write(shard.Trip("search", now(), now().Add(time.Minute), 1))
		time.Sleep(6 * time.Hour)
		probe := now().Add(time.Second)
		b.Write(shard.Probe("search", now(), probe))
		b.Write(shard.Close("search", probe, now(), shard.RestartPace))
		if rep := b.run(); len(rep.Flights.Stuck) != 0 {
			b.Errorf("report %+v: the flight is stuck, although the sink has just come back", rep.Flights)
		}
		time.Sleep(orphan)
		if rep := b.run(); len(rep.Flights.Stuck) != 0 {
			b.Errorf("report %+v: the flight is stuck, although its message may still be hidden", rep.Flights)
		}
		stuck := 0
		for range config.AwayMost / b.Config.Lifecycle.PruneEvery {
			time.Sleep(b.Config.Lifecycle.PruneEvery)
			stuck = len(b.run().Flights.Stuck)
		}
		if stuck != 1 {
			b.Error("the flight is not stuck, want it stuck by now")
		}
	})
}

// While no execution can be started, receive stores a manifest at each delivery, and no row shows
// this.
func TestAFlightWhoseEventsAYoungerFlightHoldsIsNotStuck(t *testing.T) {
	play(t, func(b *bench) {
		judge := func(when string, waiting int, stuck ...flight.ID) {
			b.Helper()
			if rep := b.next(); rep.Flights.Waiting != waiting || !slices.Equal(rep.Flights.Stuck, stuck) {
				b.Errorf("%s: report %+v, want %d waiting and %v stuck", when, rep.Flights, waiting, stuck)
			}
		}
		b.flight(entry{doc(1), 1}, entry{doc(2), 1})
		time.Sleep(silent + 1)
		again := b.flight(entry{doc(1), 1})
		other := b.flight(entry{doc(2), 1})
		judge("after the messages were delivered again", 1)
		for end := time.Now().Add(silent); time.Now().Before(end); { // run prune often enough that it misses no run
			b.next()
		}
		judge("after no further delivery", 1, again, other)
		for range 2001 {
			b.flight()
		}
		judge("while many flights fail", 3)
	})
}

func TestFlightThatContinuesIsNotAnOrphan(t *testing.T) {
	play(t, func(b *bench) {
		id := b.flight(entry{doc(1), 1})
		for n := range 20 {
			time.Sleep(4 * time.Minute)
			if _, err := b.flights.Continue(b.Context(), id, n+1, flight.State{Flight: id}); err != nil {
				b.Fatal(err)
			}
			time.Sleep(time.Minute)
			if rep := b.run(); rep.Flights.Old != 0 {
				b.Fatalf("report %+v", rep.Flights)
			}
		}
		b.commit(doc(1), 1, shard.Put)
		time.Sleep(orphan)
		if rep := b.run(); rep.Flights.Deleted != 1 || len(b.stored()) != 0 {
			b.Errorf("report %+v, want the flight deleted with its checkpoints", rep.Flights)
		}
	})
}

// indexing returns the function index with the bench's stores.
func (b *bench) indexing(s *memorysink.Sink) *index.Handler {
	b.Helper()
	clk := clock.System{}
	return &index.Handler{
		Shards: b.Shards, Flights: b.flights,
		Queues: map[flight.Lane]queue.Queue{flight.Live: b.live, flight.Bulk: b.bulk},
		Dead:   memory.NewQueue(clk, memory.QueueSettings{Name: "dead"}), Sink: s, SinkName: "search",
		Sources: b.Sources, Config: &b.Config, Clock: clk, Journal: &b.Notes,
		NewToken: func() shard.Token { return shard.Token(time.Now().String()) },
		Jitter:   func() float64 { return 0.5 },
	}
}

// rescuer returns a pruner whose flights index runs, and the sink to which they write.
func (b *bench) rescuer() (*memorysink.Sink, *prune.Pruner) {
	b.Helper()
	clk := clock.System{}
	s := memorysink.New(clk, memorysink.Settings{Versions: true})
	h := b.indexing(s)
	m := memory.NewMachine(clk, memory.MachineSettings{Report: func(err error) { b.Error(err) }}, h.Turn)
	b.Cleanup(m.Close)
	p := b.pruner()
	h.Launcher, p.Launcher = m, m
	return s, p
}

// manifest returns the stored manifest of a flight.
func (b *bench) manifest(id flight.ID) *flight.Manifest {
	b.Helper()
	m, err := b.flights.Get(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

func TestRescueWritesWhatASilentQueueLost(t *testing.T) {
	t.Parallel()
	type row struct {
		row func(b *bench)
	}
	usecasetest.Table(t, play, map[string]row{
		"still pending":         {func(*bench) {}},
		"the row was collected": {func(b *bench) { b.Write(shard.Write{Doc: doc(1), Drop: true}) }},
		"twelve hours later":    {func(*bench) { time.Sleep(13 * time.Hour) }},
	}, func(b *bench, tt row) {
		fixed := b.flight(entry{doc(1), 3}, entry{doc(2), 1})
		b.commit(doc(2), 1, shard.Put)
		time.Sleep(silent)
		tt.row(b)
		if rep := b.next(); len(rep.Flights.Stuck) != 1 {
			b.Fatalf("report %+v, want the flight stuck", rep.Flights)
		}
		s, p := b.rescuer()
		to, err := p.Rescue(b.Context(), fixed)
		if err != nil || to == fixed {
			b.Fatalf("rescue: new flight %s, error %v", to, err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		got, ok, err := s.Get(b.Context(), doc(1))
		if err != nil || !ok || got.Version != "3" {
			b.Errorf("the sink holds %+v, there %t, error %v; want version 3", got, ok, err)
		}
		if n := s.Counts().Ops; n != 1 {
			b.Errorf("%d documents were written, want 1, because the other was done", n)
		}
		if r := b.Row(doc(1)); r.Committed == "" || r.Pending != "" {
			b.Errorf("row %+v, want the version committed", r)
		}
		if _, err := p.Rescue(b.Context(), fixed); !errors.Is(err, prune.ErrNothingToRescue) {
			b.Errorf("rescue again: %v, want ErrNothingToRescue", err)
		}
		if rep := b.next(); rep.Flights.Deleted != 1 || len(b.stored()) != 0 {
			b.Errorf("report %+v, %d flights are left; want none", rep.Flights, len(b.stored()))
		}
	})
}

// A flight may hold several versions of a document, in any order. A rescue admits the newest
// version. Otherwise the row would be pending on an older version. Then the newer version would
// leave the new flight as superseded, and no message would admit it again.
func TestRescueOfSeveralVersionsWritesTheNewest(t *testing.T) {
	t.Parallel()
	for _, versions := range [][]int{{2, 3}, {3, 2}, {2, 3, 1}} {
		t.Run(fmt.Sprint(versions), func(t *testing.T) {
			play(t, func(b *bench) {
				var held []entry
				for _, v := range versions {
					held = append(held, entry{doc(1), v})
				}
				id := b.flight(held...)
				b.Write(shard.Write{Doc: doc(1), Drop: true})
				s, p := b.rescuer()
				if _, err := p.Rescue(b.Context(), id); err != nil {
					b.Fatal(err)
				}
				if got := b.Row(doc(1)).Pending; got != b.key(3) {
					b.Errorf("%s is pending, want version 3", got)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if got, _, err := s.Get(b.Context(), doc(1)); err != nil || got.Version != "3" || s.Counts().Ops != 1 {
					b.Errorf("the sink holds version %q after %d writes, error %v; want version 3 after one",
						got.Version, s.Counts().Ops, err)
				}
			})
		})
	}
}

// SQS does not deliver the messages of a rescued flight again. So a version stays in the flight
// even if a newer version is pending, because the newer version may be poison.
func TestARescuedVersionDoesNotLeaveItsFlight(t *testing.T) {
	play(t, func(b *bench) {
		id := b.flight(entry{doc(1), 1})
		time.Sleep(silent)
		b.Write(shard.Write{Doc: doc(1), Drop: true}) // the row was deleted, so the newer version begins a burst
		b.admit(doc(1), 2)                            // no flight writes the newer version
		s, p := b.rescuer()
		if _, err := p.Rescue(b.Context(), id); err != nil {
			b.Fatal(err)
		}
		time.Sleep(b.Config.Debounce.MaxWait + b.Config.Debounce.CapGrace + 5*time.Second)
		synctest.Wait()
		if got, ok, err := s.Get(b.Context(), doc(1)); err != nil || !ok || got.Version != "1" {
			b.Errorf("the sink holds %+v, there %t, error %v; want version 1 at the cap", got, ok, err)
		}
		b.Noted(journal.LeftSuperseded, 0)
	})
}

func TestRescueThatCannotStartChangesNothing(t *testing.T) {
	play(t, func(b *bench) {
		id := b.flight(entry{doc(1), 1})
		p, v := b.faulty(usecasetest.Fails("StartExecution", fault.FailBefore, 100))
		p.Launcher = v.Launcher(nil)
		if _, err := p.Rescue(b.Context(), id); !errors.Is(err, fault.ErrInjected) {
			b.Errorf("got %v, want the launcher's error", err)
		}
		if got := b.stored(); len(got) != 1 || got[0] != id {
			b.Errorf("flights %v, want only %s", got, id)
		}
		if _, err := p.Rescue(b.Context(), "01ARZ3NDEKTSV4RRFFQ69G5FAV"); !errors.Is(err, flight.ErrNotFound) {
			b.Errorf("unknown flight: got %v, want ErrNotFound", err)
		}
		b.Write(shard.Write{Doc: doc(1), Drop: true})
		time.Sleep(40 * day)
		if _, err := p.Rescue(b.Context(), id); !errors.Is(err, prune.ErrNothingToRescue) {
			b.Errorf("older than rows are kept: got %v, want ErrNothingToRescue", err)
		}
	})
}

// A lost flight of outage writes compares nothing with the rows. If a row has a newer version,
// prune lists the document for a resync before it deletes the manifest.
func TestWhatALostOpenFlightWroteIsListedForResync(t *testing.T) {
	t.Parallel()
	type row struct {
		open   bool
		then   func(b *bench)
		listed int
	}
	usecasetest.Table(t, play, map[string]row{
		"a newer delete is committed":     {true, func(b *bench) { b.commit(doc(1), 3, shard.Delete) }, 1},
		"a newer put is committed":        {true, func(b *bench) { b.commit(doc(1), 3, shard.Put) }, 1},
		"the version itself is committed": {true, func(b *bench) { b.commit(doc(1), 2, shard.Put) }, 0},
		"the version is a dead letter":    {true, func(b *bench) { b.park(doc(1), 2) }, 0},
		"an operator took the version back": {true, func(b *bench) {
			b.commit(doc(1), 2, shard.Put)
			b.Change(doc(1), func(r *shard.Row) { r.Committed, r.TakenBack = b.key(1), shard.KeySetOf(r.Committed) })
		}, 1},
		"a flight that asked its rows": {false, func(b *bench) { b.commit(doc(1), 3, shard.Delete) }, 0},
	}, func(b *bench, c row) {
		id := b.flight(entry{doc(1), 2})
		if c.open {
			m := b.manifest(id)
			m.Records[0].Events[0].Admitted = 0
			if err := b.flights.Put(b.Context(), m); err != nil {
				b.Fatal(err)
			}
		}
		c.then(b)
		time.Sleep(orphan + 1)
		b.run()
		b.Noted(journal.OutageResync, c.listed)
		if n := len(b.stored()); n != 0 {
			b.Errorf("%d manifests are left, want none", n)
		}
	})
}
