// SPDX-License-Identifier: Apache-2.0

package prune_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

func TestManyRulesThatFireAreOneRun(t *testing.T) {
	play(t, func(b *bench) {
		fire := func() (ran int) {
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					rep, err := b.pruner().Run(b.Context())
					if err != nil {
						b.Errorf("error %v, want none when it is another run's turn", err)
					}
					mu.Lock()
					defer mu.Unlock()
					if rep.Ran {
						ran++
					}
				})
			}
			wg.Wait()
			return ran
		}
		for n := range 3 {
			if got := fire(); got != 1 {
				b.Errorf("round %d: %d runs, want 1", n, got)
			}
			time.Sleep(time.Minute)
			if got := fire(); got != 0 {
				b.Errorf("a minute later: %d runs, want none", got)
			}
			// the rule does not fire exactly to the second
			time.Sleep(b.Config.Lifecycle.PruneEvery - time.Minute - 5*time.Second)
		}
	})
}

func TestLostAnswerOfTheTurnIsRecognisedAsOwn(t *testing.T) {
	play(t, func(b *bench) {
		b.world()
		lost := map[string]bool{}
		p, _ := b.faulty(decide(func(op fault.Op) fault.Verdict {
			if (op.Call == "START RUN" || op.Call == "END RUN") && !lost[op.Call+string(op.Doc)] {
				lost[op.Call+string(op.Doc)] = true
				return fault.FailAfter
			}
			return fault.OK
		}))
		rep, err := p.Run(b.Context())
		if err != nil || !rep.Ran || rep.Rows.Collected != 20 || len(lost) != 4 {
			b.Errorf("report %+v, error %v, lost %v; want a complete run", rep, err, lost)
		}
	})
}

// world makes work for every segment.
func (b *bench) world() {
	b.Helper()
	for i := range 20 {
		b.commit(doc(fmt.Sprint("old", i)), 1, shard.Put)
	}
	time.Sleep(30*day - time.Hour)
	b.commit(doc("young"), 1, shard.Put)
	b.commit(doc("superseded"), 2, shard.Put)
	b.letter(doc("superseded"), 1, deadletter.RejectedBySink)
	b.admit(doc("transient"), 1)
	b.park(doc("transient"), 1)
	b.letter(doc("transient"), 1, deadletter.Refusals)
	b.letter(doc("kept"), 1, deadletter.Contract)
	b.flight(entry{doc("young"), 1})
	b.flight(entry{doc("waits"), 1})
	time.Sleep(time.Hour)
	for i := range 5 {
		b.schedules(fmt.Sprint("s", i), time.Now().Add(time.Duration(i)*time.Minute),
			[]flight.Lane{flight.Live, flight.Bulk}[i%2])
	}
	b.schedules("later", time.Now().Add(2*time.Hour), flight.Live)
}

// end describes what is left after the runs. It ignores copies, because a message may be sent
// twice.
func (b *bench) end() string {
	b.Helper()
	var s strings.Builder
	for i := range 20 {
		if b.Row(doc(fmt.Sprint("old", i))).Exists() {
			fmt.Fprintf(&s, "row old%d; ", i)
		}
	}
	for _, id := range []string{"young", "superseded", "transient", "kept", "waits"} {
		fmt.Fprintf(&s, "%s %t; ", id, b.Row(doc(id)).Exists())
	}
	facts, _, err := b.Letters.List(b.Context(), deadletter.Filter{}, "", 100)
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range facts {
		fmt.Fprintf(&s, "dead letter %s %s; ", f.Doc, f.State)
	}
	fmt.Fprintf(&s, "%d flights; %d scheduled; ", len(b.stored()), b.schedule.Len())
	seen := map[string]bool{}
	time.Sleep(15 * time.Minute)
	for _, q := range []interface {
		Receive(context.Context, int, time.Duration) ([]queue.Message, error)
	}{b.live, b.bulk} {
		ms, err := q.Receive(b.Context(), 1000, 0)
		if err != nil {
			b.Fatal(err)
		}
		for _, m := range ms {
			seen[m.Body] = true
		}
	}
	fmt.Fprintf(&s, "%d different messages", len(seen))
	return s.String()
}

const wantEnd = "young true; superseded true; transient true; kept false; waits true; dead letter content#transient redriven; dead letter content#kept parked; " +
	"1 flights; 1 scheduled; 6 different messages"

// Row 47 of docs/faults.md: four pruners that run at the same time leave the same result as one.
func TestTwoPrunersComeToTheSameEnd(t *testing.T) {
	play(t, func(b *bench) {
		b.world()
		var wg sync.WaitGroup
		ran := make([]bool, 4)
		for i := range ran {
			// Every call takes a while, and each pruner has the turn by its own clock.
			p, _ := b.faulty(decide(func(fault.Op) fault.Verdict {
				time.Sleep(time.Duration(90+7*i) * time.Millisecond)
				return fault.OK
			}))
			p.Clock = clock.Skewed{Clock: clock.System{}, By: time.Duration(i) * 10 * time.Minute}
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 500 * time.Millisecond)
				rep, err := p.Run(b.Context())
				if err != nil {
					b.Errorf("pruner %d: %v", i, err)
				}
				ran[i] = rep.Ran
			})
		}
		wg.Wait()
		if !ran[0] || !ran[1] || !ran[2] || !ran[3] {
			b.Errorf("ran: %v, want all of them at the same time", ran)
		}
		if got := b.end(); got != wantEnd {
			b.Errorf("got  %s\nwant %s", got, wantEnd)
		}
	})
}

// Row 47 of docs/faults.md: a run is killed at any of its calls, before or after the call is
// applied, and the next run continues.
func TestRunKilledAnywhereComesToTheSameEnd(t *testing.T) {
	t.Parallel()
	for _, verdict := range []fault.Verdict{fault.CrashBefore, fault.CrashAfter} {
		for at, killed := 0, true; killed; at++ {
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				b.world()
				var mu sync.Mutex
				n := 0
				p, v := b.faulty(decide(func(fault.Op) fault.Verdict {
					mu.Lock()
					defer mu.Unlock()
					if n++; n > at {
						return verdict
					}
					return fault.OK
				}))
				_, _ = p.Run(t.Context()) // the answer is lost, because the run was killed
				if killed = v.Killed(); !killed && at < 50 {
					t.Fatalf("the run made only %d calls: the test needs more work", at)
				}
				for range 3 {
					b.next()
				}
				if got := b.end(); got != wantEnd {
					t.Errorf("%s at call %d\ngot  %s\nwant %s", verdict, at, got, wantEnd)
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

func TestFailingSegmentIsReportedAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ call, segment string }{
		{"ListScheduled", "scheduled events"},
		{"ListLetters", "dead letters"},
		{"ListFlights", "flights"},
		{"Scan", "rows"},
	} {
		t.Run(tt.segment, func(t *testing.T) {
			play(t, func(b *bench) {
				b.world()
				p, _ := b.faulty(usecasetest.Always(tt.call, fault.FailBefore))
				rep, err := p.Run(b.Context())
				if !errors.Is(err, fault.ErrInjected) || !strings.Contains(err.Error(), tt.segment) {
					b.Errorf("error %v, want it to name %s", err, tt.segment)
				}
				done := map[string]bool{
					"scheduled events": rep.Schedule.Sent == 5, "dead letters": rep.Letters.Superseded == 1,
					"flights": rep.Flights.Deleted == 1, "rows": rep.Rows.Collected == 20,
				}
				for segment, ok := range done {
					if ok == (segment == tt.segment) {
						b.Errorf("segment %s did its work: %t (%+v)", segment, ok, rep)
					}
				}
			})
		})
	}
}

// endless is a table that never answers END RUN.
type endless struct{}

func (endless) Decide(ctx context.Context, _ *fault.Invocation, op fault.Op) fault.Verdict {
	if op.Call == "END RUN" {
		<-ctx.Done()
	}
	return fault.OK
}

func TestARunEndsWhereItsTurnCannotBeGivenBack(t *testing.T) {
	play(t, func(b *bench) {
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		p, _ := b.faulty(endless{})
		if rep, err := p.Run(ctx); !errors.Is(err, context.DeadlineExceeded) || !rep.Ran {
			b.Errorf("report %+v, error %v, want the run to end with an error", rep, err)
		}
	})
}

func TestRunStaysWithinItsBudgets(t *testing.T) {
	play(t, func(b *bench) {
		for i := range 600 {
			b.letter(doc(i), 1, deadletter.Contract)
		}
		p := b.pruner()
		p.Budget = prune.Budget{Letters: 150, Time: 10 * time.Second}
		seen := 0
		for range 3 {
			start := time.Now()
			rep, err := p.Run(b.Context())
			if err != nil || rep.Letters.Seen > 200 {
				b.Errorf("run: %+v, error %v; want about 150 dead letters seen", rep.Letters, err)
			}
			if d := time.Since(start); d > p.Budget.Time {
				b.Errorf("a run took %s, longer than its budget", d)
			}
			seen += rep.Letters.Seen
			time.Sleep(b.Config.Lifecycle.PruneEvery)
		}
		if seen != 600 {
			b.Errorf("three runs saw %d dead letters, want all 600, because each continues where the last one ended", seen)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a table that hangs uses only the time of one segment
		b := setup(t)
		b.world()
		p, _ := b.faulty(decide(func(op fault.Op) fault.Verdict {
			if op.Call == "ListLetters" {
				time.Sleep(12 * time.Second)
				return fault.Throttle
			}
			return fault.OK
		}))
		start := time.Now()
		rep, err := p.Run(t.Context())
		if d := time.Since(start); d > 40*time.Second {
			t.Errorf("the run took %s, longer than its budget", d)
		}
		if rep.Rows.Collected != 20 || rep.Schedule.Sent != 5 {
			t.Errorf("report %+v, error %v; want the other segments done", rep, err)
		}
	})
}
