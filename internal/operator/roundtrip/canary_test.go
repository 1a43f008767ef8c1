// SPDX-License-Identifier: Apache-2.0

package roundtrip_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/roundtrip"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

func TestACanaryPassesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	play(t, nil, func(b *bench) {
		for i := range 3 {
			got := b.want(roundtrip.Passed, "")
			if got.Took < b.cfg.Debounce.Quiet || got.Took > 10*time.Second {
				b.Errorf("run %d: committed after %s", i, got.Took)
			}
			b.clean("after a run")
			b.next()
		}
		if ops := b.sinks["search"].History("content#lull-canary"); len(ops) != 6 {
			b.Errorf("the sink got %d operations of 3 runs, want a put and a delete each: %+v", len(ops), ops)
		}
	})
}

// `lull cost` prices the reads and writes of a round trip by these numbers.
func TestARoundTripNeedsWhatItsPriceSays(t *testing.T) {
	t.Parallel()
	play(t, nil, func(b *bench) {
		api := b.api()
		reads, saves, largest := 0, 0, 0
		counted := b.api()
		counted.Progress = func(ctx context.Context, key shard.DocID) (operate.Progress, error) {
			reads += 2 // the document's row, and the health of the sink
			return api.Progress(ctx, key)
		}
		counted.TakeJob = func(ctx context.Context, c job.Claim) (job.Lease, error) {
			reads, saves = reads+4, saves+6 // the list and the lease, and both again
			return api.TakeJob(ctx, c)
		}
		save := func(l job.Lease) {
			text, err := json.Marshal(l.State)
			if err != nil {
				b.Error(err)
			}
			saves, largest = saves+1, max(largest, len(text))
		}
		counted.SaveJob = func(ctx context.Context, l job.Lease) error {
			save(l)
			return api.SaveJob(ctx, l)
		}
		counted.EndJob = func(ctx context.Context, l job.Lease) error {
			save(l)
			return api.EndJob(ctx, l)
		}
		c := roundtrip.Canary{Stack: counted, Config: &b.cfg, Clock: clock.System{}, Budget: roundtrip.Budget}
		if got := c.Run(b.Context()); got[0].Outcome != roundtrip.Passed {
			b.Fatalf("got %+v", got)
		}
		if reads > roundtrip.Reads || saves > roundtrip.Saves || largest > roundtrip.StateBytes ||
			2*reads < roundtrip.Reads || 2*saves < roundtrip.Saves || 2*largest < roundtrip.StateBytes {
			b.Errorf("got %d reads and %d writes of %d bytes, priced as %d and %d of %d", reads, saves, largest,
				roundtrip.Reads, roundtrip.Saves, roundtrip.StateBytes)
		}
	})
}

// A run may be killed at any of its calls, before or after the call takes effect. A later run
// repairs what the run left.
func TestARunThatIsKilledIsRepairedByTheNext(t *testing.T) {
	t.Parallel()
	calls := 0
	t.Run("the calls of a run", func(t *testing.T) {
		play(t, nil, func(b *bench) {
			b.want(roundtrip.Passed, "")
			calls = b.calls
		})
	})
	t.Run("killed", func(t *testing.T) {
		if calls < 20 {
			t.Fatalf("a run has %d calls", calls)
		}
		for n := 1; n <= calls; n++ {
			for _, after := range []bool{false, true} {
				t.Run(number(n)+map[bool]string{true: " after"}[after], func(t *testing.T) {
					t.Parallel()
					play(t, nil, func(b *bench) {
						b.kill, b.after = n, after
						b.run()
						b.dead, b.kill = false, 0
						b.next()
						b.want(roundtrip.Passed, "")
						b.clean("after the next run")
					})
				})
			}
		}
	})
}

// The sink is away from the first write on. Its circuit breaker opens, and the canary is silent
// until the sink has returned.
func TestASinkThatIsAwayIsNotAFailure(t *testing.T) {
	t.Parallel()
	play(t, nil, func(b *bench) {
		b.sinks["search"].SetDown(errors.New("connection refused"))
		for range 4 {
			b.want(roundtrip.Away, "sink search is unhealthy")
			b.next()
		}
		if b.published != 1 {
			b.Errorf("%d messages were sent to a sink that is away, want the first one", b.published)
		}
		b.sinks["search"].SetDown(nil)
		b.next()
		b.want(roundtrip.Passed, "")
		b.clean("after the return")
	})
}

func TestNothingIsSentToAPausedSink(t *testing.T) {
	t.Parallel()
	play(t, nil, func(b *bench) {
		order := operate.PauseOrder{Sink: "search", By: "test"}
		if _, err := b.api().Pause(b.Context(), order); err != nil {
			b.Fatal(err)
		}
		for range 3 {
			b.want(roundtrip.Away, "sink search is paused")
			b.next()
		}
		if b.published != 0 {
			b.Errorf("%d messages were sent to a paused sink", b.published)
		}
		if _, err := b.api().Resume(b.Context(), order); err != nil {
			b.Fatal(err)
		}
		b.want(roundtrip.Passed, "")
		b.clean("after the pause")
	})
}

// A sink that shows another version than the one that was committed is a failure, and the document
// is deleted.
func TestAWrongVersionInTheSinkIsAFailure(t *testing.T) {
	t.Parallel()
	play(t, nil, func(b *bench) {
		b.stale = "7"
		for range 3 {
			b.want(roundtrip.Failed, "the sink holds version 7, want ")
			b.clean("after a failure")
			b.next()
		}
		b.stale = ""
		b.want(roundtrip.Passed, "")
		b.next()
		b.want(roundtrip.Passed, "")
	})
}

// The sink loses what it acknowledged.
func TestADocumentThatTheSinkLostIsAFailure(t *testing.T) {
	t.Parallel()
	play(t, nil, func(b *bench) {
		lost := b.sinks["search"]
		lost.SetRule(func(op sink.Op) (memorysink.Answer, bool) {
			return memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Applied}}, true
		})
		b.want(roundtrip.Failed, "not found in sink search")
		lost.SetRule(nil)
		b.next()
		b.want(roundtrip.Passed, "")
	})
}

// A document that the sink always refuses becomes a dead letter. The canary makes no dead letter in
// each run, and its delete removes them.
func TestADeadLetterIsAFailureAndDoesNotStay(t *testing.T) {
	t.Parallel()
	play(t, nil, func(b *bench) {
		b.sinks["search"].SetRule(func(op sink.Op) (memorysink.Answer, bool) {
			return memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Rejected, Reason: "mapper_parsing_exception"}},
				op.Kind == shard.Put
		})
		for run := range 8 { // two hours
			b.want(roundtrip.Failed, "became a dead letter of sink search")
			b.next()
			b.clean("run " + number(run))
		}
		if b.published != 4 {
			b.Errorf("%d messages in two hours, want a put and a delete each hour", b.published)
		}
		b.sinks["search"].SetRule(nil)
		time.Sleep(time.Hour)
		b.want(roundtrip.Passed, "")
		b.clean("after the repair")
	})
}

// A window may be longer than a run, and as long as the interval. The row says when lull
// wrote, even if the run looks minutes later.
func TestALongWindowTakesSeveralRuns(t *testing.T) {
	t.Parallel()
	for _, quiet := range []time.Duration{10 * time.Minute, 15 * time.Minute} {
		t.Run(quiet.String(), func(t *testing.T) {
			t.Parallel()
			play(t, func(c *config.Config) { c.SetQuiet(quiet) }, func(b *bench) {
				passed := 0
				for range 40 {
					switch got := b.run()["search"]; got.Outcome {
					case roundtrip.Passed:
						if passed++; got.Took < quiet || got.Took > quiet+time.Minute {
							b.Errorf("committed after %s", got.Took)
						}
					case roundtrip.Unfinished:
					default:
						b.Errorf("got %+v", got)
					}
					b.next()
				}
				if passed < 8 {
					b.Errorf("%d round trips passed in ten hours", passed)
				}
			})
		})
	}
}

// A write that was under way when the sink was paused has more time after the pause.
func TestAPauseIsAnExcuse(t *testing.T) {
	t.Parallel()
	play(t, nil, func(b *bench) {
		order := operate.PauseOrder{Sink: "search", By: "test"}
		got := make(chan roundtrip.Result)
		go func() { got <- b.run()["search"] }()
		time.Sleep(2 * time.Second)
		if _, err := b.api().Pause(b.Context(), order); err != nil {
			b.Fatal(err)
		}
		if r := <-got; r.Outcome != roundtrip.Away {
			b.Errorf("during the pause: got %+v", r)
		}
		for range 4 {
			b.next()
			b.want(roundtrip.Away, "is paused")
		}
		if _, err := b.api().Resume(b.Context(), order); err != nil {
			b.Fatal(err)
		}
		for range 3 {
			if r := b.run()["search"]; r.Outcome == roundtrip.Failed {
				b.Errorf("after the pause: got %+v", r)
			}
			b.next()
		}
		b.want(roundtrip.Passed, "")
		b.clean("after the pause")
	})
}

// Nothing is committed any more. Each run after the allowed time is a failure, until a round trip
// passes.
func TestAStackThatCommitsNothingFailsInEachRun(t *testing.T) {
	t.Parallel()
	play(t, nil, func(b *bench) {
		b.want(roundtrip.Passed, "")
		b.next()
		b.lose = true
		b.want(roundtrip.Unfinished, "")
		for range 5 { // the last one ends a round trip, so that the next run begins one
			b.next()
			b.want(roundtrip.Failed, "was not committed within 2m0s")
		}
		b.lose = false
		b.next()
		b.want(roundtrip.Passed, "")
		b.clean("after the repair")
	})
}

func TestTwoRunsAtOnceDoNoHarm(t *testing.T) {
	t.Parallel()
	play(t, nil, func(b *bench) {
		first := make(chan roundtrip.Result)
		go func() { first <- b.run()["search"] }()
		time.Sleep(2 * time.Second)
		other := roundtrip.Canary{Stack: b.api(), Config: &b.cfg, Clock: clock.System{}, Budget: roundtrip.Budget}
		if got := other.Run(b.Context()); len(got) != 1 || got[0].Outcome != roundtrip.Busy {
			b.Errorf("the second run: got %+v, want that it is busy", got)
		}
		if got := <-first; got.Outcome != roundtrip.Passed {
			b.Errorf("the first run: got %+v", got)
		}
		b.clean("after both")
	})
}

func TestTheResultsSayWhichTableFails(t *testing.T) {
	t.Parallel()
	play(t, nil, func(b *bench) {
		denied := errors.New("AccessDenied: not authorized to perform dynamodb:BatchGetItem")
		c := roundtrip.Canary{Stack: b.api(), Config: &b.cfg, Clock: clock.System{}, Budget: roundtrip.Budget}
		c.Stack.Progress = func(context.Context, shard.DocID) (operate.Progress, error) {
			return operate.Progress{}, denied
		}
		if got := c.Run(b.Context())[0]; got.Outcome != roundtrip.Failed || !strings.Contains(got.Why, denied.Error()) {
			b.Errorf("got %+v", got)
		}
	})
}
