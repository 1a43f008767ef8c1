// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/clock/clocktest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// Row 7 of docs/faults.md: two invocations read an expired lease before either of them claims.
func TestTwoTakersOfAnExpiredLeaseHaveOneWinner(t *testing.T) {
	stage{sink: memorysink.Settings{Latency: 2 * time.Second}}.play(t, func(b *bench) {
		first := b.hold(put("a", 1))
		b.inject = fails("CLAIM", fault.CrashAfter, 1)
		time.Sleep(time.Until(first.Wake()))
		if _, inv, _ := b.invoke(first); !inv.Killed() {
			b.Fatal("the first owner was not killed")
		}
		time.Sleep(b.Config.Queues.Visibility) // the message is redelivered, and the lease expired long ago
		second := b.receive(flight.Live)
		i := b.invocation()
		i.inject = usecasetest.On("CLAIM again", func(fault.Op) {
			time.Sleep(10 * time.Millisecond) // until both invocations have read the row
		})
		var after [2]flight.State
		var wg sync.WaitGroup
		for n, s := range []flight.State{first, second} {
			wg.Go(func() {
				var err error
				if after[n], err = b.run(i, fault.NewInvocation(i.inject, "index", int64(n)), s); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		b.Noted(journal.Claimed, 1) // the first owner was killed before it noted its claim
		b.Noted(journal.Committed, 1)
		b.Noted(journal.LeaseLost, 0)
		b.Noted(journal.RowRefused, 1)
		if after[0].Done == after[1].Done {
			b.Errorf("done %v and %v, want only the winner's flight done", after[0].Done, after[1].Done)
		}
		for _, s := range after {
			b.fly(s, 1) // the flight that lost finds the version committed
		}
		if n := len(b.sink.History(doc("a"))); n != 1 {
			b.Errorf("%d writes applied, want 1", n)
		}
		b.inQueue(0)
	})
}

// zombie is a sink that applies requests at a set time, even if the caller no longer waits.
type zombie struct {
	sink.Sink
	lands time.Time // requests are applied no earlier than this
	spans *spans
}

// spans lists the requests of all writers: when each request began and when it was applied.
type spans struct {
	mu   sync.Mutex
	list []span
}

type span struct {
	version     string
	from, until time.Time
}

func (z zombie) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	begin := time.Now()
	time.Sleep(time.Until(z.lands))
	out := z.Sink.Write(context.WithoutCancel(ctx), ops)
	z.spans.mu.Lock()
	defer z.spans.mu.Unlock()
	z.spans.list = append(z.spans.list, span{ops[0].Version, begin, time.Now()})
	return out
}

// duel lets an invocation with one clock claim version 1, and applies its write late. In the
// meantime an invocation with another clock tries all the time to write version 2.
type duel struct {
	first, second time.Duration // how wrong the clocks of the two invocations are
	lands         time.Duration // when the first write is applied, counted from the start of the first invocation
	// earliest time of the first invocation's COMMIT, counted from its start; 0: the invocation is
	// killed when its write is applied
	commits time.Duration
	takes   time.Duration // earliest time at which the write of the second invocation is applied
}

func (d duel) fight(b *bench) (writes []span, loser flight.State) {
	b.Helper()
	one := b.hold(put("a", 1))
	time.Sleep(time.Until(one.Wake()) + 2*time.Second) // due by any of the clocks
	two := b.hold(put("a", 2))
	if two.Done {
		b.Fatal("version 2 was not held")
	}
	// The burst is long, so version 1 may be written although a newer version waits.
	b.Change(doc("a"), func(r *shard.Row) {
		r.BurstStart = now().Add(-b.Config.Debounce.MaxWait - b.Config.Debounce.CapGrace - time.Minute)
	})
	begin := time.Now()
	var log spans
	var wg sync.WaitGroup
	wg.Go(func() {
		i := b.invocation()
		i.clock = clock.Skewed{Clock: clock.System{}, By: d.first}
		i.sink = zombie{b.sink, begin.Add(d.lands), &log}
		i.inject = decide(func(op fault.Op) fault.Verdict {
			if op.Call == "COMMIT" || op.Call == "COMMIT, newer waiting" {
				if d.commits == 0 {
					return fault.CrashBefore
				}
				time.Sleep(time.Until(begin.Add(d.commits)))
			}
			return fault.OK
		})
		loser, _ = b.run(i, fault.NewInvocation(i.inject, "index", 1), one)
	})
	wg.Go(func() {
		i := b.invocation()
		i.clock = clock.Skewed{Clock: clock.System{}, By: d.second}
		i.sink = zombie{b.sink, begin.Add(d.takes), &log}
		time.Sleep(100 * time.Millisecond)
		for s := two; !s.Done; time.Sleep(10 * time.Millisecond) {
			var err error
			if s, err = b.run(i, fault.NewInvocation(i.inject, "index", 2), s); err != nil {
				b.Error(err)
				return
			}
			if time.Since(begin) > 2*time.Minute {
				b.Errorf("version 2 was not written after %s", time.Since(begin))
				return
			}
		}
	})
	wg.Wait()
	return log.list, loser
}

// Row 30 of docs/faults.md. The guard covers both how late the platform kills and how far clocks
// differ. In the worst case the owner's write is applied at the last moment. Then the clock of the
// next owner is ahead by all that remains of the guard.
func TestSkewWithinTheGuardNeverOverlapsWriters(t *testing.T) {
	const blink = time.Millisecond
	for _, versions := range []bool{true, false} {
		for _, late := range []time.Duration{0, time.Second, 2 * time.Second} {
			for _, ahead := range []time.Duration{-1, 0, 1} {
				t.Run(fmt.Sprintf("versions %v, killed %s late, second clock %+d", versions, late, ahead), func(t *testing.T) {
					stage{noVers: !versions}.play(t, func(b *bench) {
						skew := b.Config.Index.Guard - late
						delay := b.Config.Sinks["search"].Capabilities().ApplyDelay
						lands := b.Config.Index.Timeout + late + delay - blink
						got, _ := duel{first: -ahead * skew / 2, second: ahead * skew / 2, lands: lands}.fight(b)
						if len(got) != 2 || got[0].version != "1" || got[1].version != "2" {
							b.Fatalf("writes %+v, want version 1, then version 2", got)
						}
						if got[1].from.Before(got[0].until) {
							b.Errorf("version 2 was being written %s before version 1 was applied",
								got[0].until.Sub(got[1].from))
						}
						b.holds("a", "2")
						if r := b.Row(doc("a")); r.Committed != b.key("a", 2) {
							b.Errorf("row %+v, want version 2 committed", r)
						}
					})
				})
			}
		}
	}
}

// Row 30 of docs/faults.md: beyond the guard, two invocations may write at the same time. The row
// refuses the older owner's COMMIT, and a sink with versions refuses the older owner's write.
func TestSkewBeyondTheGuardIsRefusedAtCommit(t *testing.T) {
	usecasetest.Table(t, stage{}.play, map[string]time.Duration{
		"the row, after the other invocation's commit": 0,
		"the row, while the other invocation writes":   11 * time.Second,
	}, func(b *bench, takes time.Duration) {
		_, one := duel{
			second: 8 * time.Second, lands: 2 * time.Second, commits: 9 * time.Second,
			takes: takes,
		}.fight(b)
		b.Noted(journal.LeaseLost, 1)
		if n := b.Notes.Of(journal.Committed); len(n) != 1 || n[0].Key != b.key("a", 2) {
			b.Errorf("commits %+v, want only version 2", n)
		}
		if one.Done {
			b.Error("the older flight counts its version as done without reading the row again")
		}
		b.inQueue(1)
		b.fly(one, 1)
		b.Noted(journal.Superseded, 1) // superseded according to the row, not because of its own write
		b.inQueue(0)
	})
	t.Run("the sink", func(t *testing.T) {
		stage{}.play(t, func(b *bench) {
			got, one := duel{second: 8 * time.Second, lands: 9 * time.Second, commits: 9 * time.Second}.fight(b)
			if len(got) != 2 || got[0].version != "2" || got[1].version != "1" {
				b.Fatalf("writes %+v, want version 1 applied after version 2", got)
			}
			b.holds("a", "2")
			if n := b.sink.Counts().Newer; n != 1 {
				b.Errorf("the sink refused %d writes, want the older write", n)
			}
			if n := b.Notes.Of(journal.Committed); len(n) != 1 || n[0].Key != b.key("a", 2) {
				b.Errorf("commits %+v, want only version 2", n)
			}
			b.delivers(one, 2, "a", "2")
		})
	})
}

// A lease lasts at least as long as its invocation can run, and not much longer.
func TestALeaseOutlivesItsInvocation(t *testing.T) {
	for name, st := range map[string]stage{"versions": {}, "no versions": {noVers: true}} {
		t.Run(name, func(t *testing.T) {
			st.play(t, func(b *bench) {
				s := b.hold(put("a", 1))
				time.Sleep(time.Until(s.Wake()))
				begin := now()
				b.inject = usecasetest.On("Read", func(fault.Op) {
					// An invocation that claims late has no more time than an invocation that
					// claims at once.
					time.Sleep(time.Second)
				})
				b.turn(s)
				claims := b.Notes.Of(journal.Claimed)
				if len(claims) != 1 || shard.MicrosOf(claims[0].Until) != begin.Add(b.Config.Lease("search")) {
					b.Errorf("claims %+v, want a lease of %s from the start of the invocation", claims,
						b.Config.Lease("search"))
				}
			})
		})
	}
}

// manualClock is a clock that the test sets.
type manualClock struct {
	mu        sync.Mutex
	base      time.Time
	gone      time.Duration
	jump      time.Duration // how far the wall clock was set forward
	deadlines []time.Duration
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return clocktest.SetForward(c.base.Add(c.gone), c.jump)
}

func (c *manualClock) Sleep(_ context.Context, d time.Duration) error {
	c.pass(d)
	return nil
}

func (c *manualClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone += d
}

func (c *manualClock) Deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadlines = append(c.deadlines, d)
	return context.WithCancel(ctx)
}

// busy is a sink whose requests take that long by the manual clock.
type busy struct {
	sink.Sink
	takes time.Duration
	clk   *manualClock
	done  func() // called after each request
}

func (s busy) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	s.clk.pass(s.takes)
	out := s.Sink.Write(ctx, ops)
	s.done()
	return out
}

// Row 30 of docs/faults.md: the remaining time of an invocation does not change if the clock is
// set.
func TestBudgetsAreMonotonic(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{0, -time.Hour, time.Hour} {
		t.Run(fmt.Sprint(jump), func(t *testing.T) {
			t.Parallel()
			b := stage{}.setup(t)
			s := b.hold(put("a", 1), put("b", 1), put("c", 1), put("d", 1))
			for _, id := range []string{"a", "b", "c", "d"} {
				// each suspected document gets a separate request
				b.Change(doc(id), func(r *shard.Row) { r.Attempts = 3 })
			}
			clk := &manualClock{base: time.Now().Add(10 * time.Second)}
			b.clock = clk
			b.through = func(s sink.Sink) sink.Sink {
				return busy{s, 3 * time.Second, clk, func() { clk.mu.Lock(); defer clk.mu.Unlock(); clk.jump = jump }}
			}
			if _, _, err := b.invoke(s); err != nil {
				t.Fatal(err)
			}
			// The invocation has ten seconds. Its requests start at 0, 3 and 6 s. At 9 s too little
			// time remains for another request and its commit.
			if n := b.sink.Counts().Requests; n != 3 {
				t.Errorf("%d requests, want 3", n)
			}
			// First the deadline of the invocation itself. Then, of the time that remains less two
			// seconds, half for payloads, and for each request six seconds or all of it.
			if want := []time.Duration{
				10 * time.Second, 4 * time.Second, 6 * time.Second, 2500 * time.Millisecond,
				5 * time.Second, time.Second, 2 * time.Second,
			}; !slices.Equal(clk.deadlines, want) {
				t.Errorf("deadlines %v, want %v", clk.deadlines, want)
			}
			b.Noted(journal.Committed, 3)
		})
	}
}
