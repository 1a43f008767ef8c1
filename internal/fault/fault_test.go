// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// decide is a function that implements Injector.
type decide func(v *fault.Invocation, op fault.Op) fault.Verdict

func (d decide) Decide(_ context.Context, v *fault.Invocation, op fault.Op) fault.Verdict {
	return d(v, op)
}

func always(v fault.Verdict) fault.Injector {
	return decide(func(*fault.Invocation, fault.Op) fault.Verdict { return v })
}

// TestWhatAVerdictDoes checks which I/O is applied, and which error the caller gets.
func TestWhatAVerdictDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		verdict fault.Verdict
		applied bool
		err     error
		final   bool // whether another try is useless
		killed  bool
	}{
		{fault.OK, true, nil, false, false},
		{fault.FailBefore, false, fault.ErrInjected, false, false},
		{fault.FailAfter, true, fault.ErrInjected, false, false},
		{fault.Throttle, false, shard.ErrThrottled, false, false},
		{fault.CrashBefore, false, fault.ErrKilled, true, true},
		{fault.CrashAfter, true, fault.ErrKilled, true, true},
	} {
		t.Run(c.verdict.String(), func(t *testing.T) {
			t.Parallel()
			rows := memory.NewShards()
			v := fault.NewInvocation(always(c.verdict), "index", 1)
			_, err := v.Shards(rows).Write(t.Context(), shardtest.Put(shard.Row{Doc: "a#1", Level: 1}))
			if !errors.Is(err, c.err) || err != nil && backoff.Final(err) != c.final {
				t.Errorf("error %v, want %v, final: %v", err, c.err, c.final)
			}
			if got := rows.Len() == 1; got != c.applied {
				t.Errorf("applied: %v, want %v", got, c.applied)
			}
			if v.Killed() != c.killed {
				t.Errorf("killed: %v, want %v", v.Killed(), c.killed)
			}
		})
	}
}

// TestTheDeadDoNothing: the goroutines of a killed invocation continue, but their I/O has no
// effect.
func TestTheDeadDoNothing(t *testing.T) {
	t.Parallel()
	rows := memory.NewShards()
	v := fault.NewInvocation(always(fault.OK), "index", 1)
	v.Kill()
	if _, err := v.Shards(rows).Write(t.Context(), shardtest.Put(shard.Row{Doc: "a#1", Level: 1})); !errors.Is(err,
		fault.ErrKilled) || rows.Len() != 0 {
		t.Errorf("error %v, %d rows, want ErrKilled and none", err, rows.Len())
	}
	parked := fault.NewInvocation(decide(func(v *fault.Invocation, _ fault.Op) fault.Verdict {
		v.Kill() // while the call waits in the simulator
		return fault.OK
	}), "index", 2)
	if _, err := parked.Shards(rows).Write(t.Context(), shardtest.Put(shard.Row{Doc: "a#1", Level: 1})); !errors.Is(err,
		fault.ErrKilled) || rows.Len() != 0 {
		t.Errorf("error %v, %d rows, want ErrKilled and none", err, rows.Len())
	}
}

// TestAFaultOfAQueueConcernsTenEntries: a failure affects one batch call of ten entries, as on SQS.
func TestAFaultOfAQueueConcernsTenEntries(t *testing.T) {
	t.Parallel()
	for verdict, wantSent := range map[fault.Verdict]int{
		fault.FailBefore: 15, fault.FailAfter: 25, fault.Throttle: 15,
		fault.CrashAfter: 20,
	} {
		t.Run(verdict.String(), func(t *testing.T) {
			t.Parallel()
			q := memory.NewQueue(clock.System{}, memory.QueueSettings{Name: "q"})
			calls := 0
			v := fault.NewInvocation(decide(func(_ *fault.Invocation, op fault.Op) fault.Verdict {
				if calls++; calls == 2 {
					return verdict
				}
				if op.Service != fault.SQS || op.Count != 10 && op.Count != 5 {
					t.Errorf("asked for %+v", op)
				}
				return fault.OK
			}), "receive", 1)
			out := make([]queue.Outgoing, 25)
			for i := range out {
				out[i].Body = fmt.Sprint(i)
			}
			errs := v.Queue(q).Send(t.Context(), out)
			for i := range out {
				bad := i >= 10 && i < 20 || verdict == fault.CrashAfter && i >= 20
				if got := queue.ErrorAt(errs, i) != nil; got != bad {
					t.Errorf("entry %d: %v, want an error: %v", i, queue.ErrorAt(errs, i), bad)
				}
			}
			if got := q.Counts().Total(); got != wantSent {
				t.Errorf("%d messages sent, want %d", got, wantSent)
			}
		})
	}
}

func TestASinkIsThrottledAloudAndFailsInSilence(t *testing.T) {
	t.Parallel()
	ops := []sink.Op{
		{Doc: "a#1", Kind: shard.Put, Fence: 1, Document: []byte(`{}`)},
		{Doc: "a#2", Kind: shard.Put, Fence: 1, Document: []byte(`{}`)},
	}
	for verdict, want := range map[fault.Verdict]struct {
		outcome sink.Outcome
		applied int64
	}{
		fault.OK: {sink.Outcome{Kind: sink.Applied, Status: 200}, 2},
		fault.Throttle: {sink.Outcome{
			Kind: sink.Throttled, Status: 429, RetryAfter: fault.RetryAfter,
			Reason: "injected",
		}, 0},
		fault.FailBefore: {sink.Outcome{Kind: sink.Unknown, Reason: "injected"}, 0},
		fault.FailAfter:  {sink.Outcome{Kind: sink.Unknown, Reason: "injected"}, 2},
	} {
		t.Run(verdict.String(), func(t *testing.T) {
			t.Parallel()
			s := memorysink.New(clock.System{}, memorysink.Settings{Versions: true})
			got := fault.NewInvocation(always(verdict), "index", 1).Sink(s).Write(t.Context(), ops)
			if len(got) != len(ops) || got[0] != want.outcome || got[1] != want.outcome {
				t.Errorf("outcomes %+v, want %+v for each", got, want.outcome)
			}
			if n := s.Counts().Applied; n != want.applied {
				t.Errorf("%d applied, want %d", n, want.applied)
			}
		})
	}
}

// TestAMixKillsWhomItChooses: a chosen invocation is always killed, at one of its I/Os. If it has
// fewer I/Os, it is killed before its answer.
func TestAMixKillsWhomItChooses(t *testing.T) {
	t.Parallel()
	for _, calls := range []int{0, 3, 1000} {
		m := fault.NewMix(fault.Rates{Kill: 1}, 7)
		for id := range int64(100) {
			v := fault.NewInvocation(m, "index", id)
			m.Begin(v)
			done := 0
			rows := v.Shards(memory.NewShards())
			for range calls {
				if _, err := rows.Read(t.Context(), []shard.DocID{"a#1"}, shard.Eventual); err != nil {
					break
				}
				done++
			}
			if calls == 1000 && (!v.Killed() || done >= 40) {
				t.Fatalf("invocation %d: killed %v after %d calls, want it within 40", id, v.Killed(), done)
			}
			if m.End(v); !v.Killed() {
				t.Fatalf("invocation %d of %d calls survived", id, calls)
			}
		}
	}
	m := fault.NewMix(fault.Rates{}, 7)
	v := fault.NewInvocation(m, "index", 1)
	m.Begin(v)
	if m.End(v); v.Killed() {
		t.Error("killed at a rate of 0")
	}
}

func TestAMixKeepsItsRates(t *testing.T) {
	t.Parallel()
	rates := fault.Rates{IOFailBefore: 0.1, IOFailAfter: 0.2, IOThrottle: 0.3, SinkThrottle: 0.25}
	const n = 20_000
	for _, c := range []struct {
		op   fault.Op
		want map[fault.Verdict]float64
	}{
		{fault.Op{Service: fault.Table, Call: "CLAIM"}, map[fault.Verdict]float64{
			fault.OK: 0.4, fault.FailBefore: 0.1,
			fault.FailAfter: 0.2, fault.Throttle: 0.3,
		}},
		{fault.Op{Service: fault.Search, Call: "ping"}, map[fault.Verdict]float64{
			fault.OK: 0.4, fault.FailBefore: 0.1,
			fault.FailAfter: 0.2, fault.Throttle: 0.3,
		}},
		{
			fault.Op{Service: fault.Search, Call: "_bulk"},
			map[fault.Verdict]float64{
				fault.OK: 0.15, fault.FailBefore: 0.1, fault.FailAfter: 0.2,
				fault.Throttle: 0.55,
			},
		},
	} {
		m := fault.NewMix(rates, 11)
		v := fault.NewInvocation(m, "index", 1)
		got := map[fault.Verdict]float64{}
		for range n {
			got[m.Decide(t.Context(), v, c.op)] += 1.0 / n
		}
		for verdict, want := range c.want {
			if d := got[verdict] - want; d > 0.02 || d < -0.02 {
				t.Errorf("%s: %s at a rate of %.3f, want %.2f", c.op.Call, verdict, got[verdict], want)
			}
		}
	}
	m := fault.NewMix(rates, 11)
	for range 1000 {
		if d := m.Between(time.Second); d < -time.Second || d > time.Second {
			t.Fatalf("%s is not within a second", d)
		}
	}
}

// TestAPanelRefusesWhatCannotBe: a panel checks the bounds of its input. Wrong input changes
// nothing.
func TestAPanelRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	p := fault.NewPanel(clock.System{}, nil)
	down := fault.Broken{SinkDown: true}
	if err := p.Break(down); err != nil {
		t.Fatal(err)
	}
	for says, b := range map[string]fault.Broken{
		"sink_slow_ms -1":    {SinkSlowMS: -1},
		"sink_slow_ms 30001": {SinkSlowMS: 30_001},
		"sink_rejects 1.5":   {SinkRejects: 1.5},
		"sink_rejects NaN":   {SinkRejects: math.NaN()},
	} {
		if err := p.Break(b); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
	if err := p.Kill("<script>"); err == nil || !strings.Contains(err.Error(), "receive, index") {
		t.Errorf("got %v, want the functions that there are", err)
	}
	if s := p.State(); s.Broken != down || len(s.Armed) > 0 || s.Since.IsZero() || !s.Righted.IsZero() {
		t.Errorf("%+v", s)
	}
}

// TestAKillWaitsForItsInvocation: fixing everything also cancels a kill that no invocation has
// reached.
func TestAKillWaitsForItsInvocation(t *testing.T) {
	t.Parallel()
	p := fault.NewPanel(clock.System{}, nil)
	write := func(call fault.Op) fault.Verdict {
		return p.Decide(t.Context(), fault.NewInvocation(p, "index", 1), call)
	}
	bulk := fault.Op{Service: fault.Search, Call: "_bulk"}
	for range 2 {
		if err := p.Kill("index"); err != nil {
			t.Fatal(err)
		}
	}
	if got := write(fault.Op{Service: fault.Search, Call: "ping"}); got != fault.OK {
		t.Errorf("a ping: %s, want a kill to wait for the write", got)
	}
	if got := write(bulk); got != fault.CrashAfter {
		t.Errorf("the first write: %s", got)
	}
	if err := p.Break(fault.Broken{}); err != nil {
		t.Fatal(err)
	}
	if got := write(bulk); got != fault.OK {
		t.Errorf("after everything was put right: %s", got)
	}
	if s := p.State(); s.Killed["index"] != 1 || s.Armed["index"] != 0 || s.Righted.IsZero() {
		t.Errorf("%+v", s)
	}
}

// TestASinkRefusesTheSameVersionsEachTime: a sink that refuses a share of versions refuses the same
// versions each time, and writes all others.
func TestASinkRefusesTheSameVersionsEachTime(t *testing.T) {
	t.Parallel()
	p := fault.NewPanel(clock.System{}, nil)
	if err := p.Break(fault.Broken{SinkRejects: 0.5}); err != nil {
		t.Fatal(err)
	}
	v := fault.NewInvocation(p, "index", 1)
	v.Refuses = p.Refuses
	to := memorysink.New(clock.System{}, memorysink.Settings{Versions: true})
	var ops []sink.Op
	for i := range 40 {
		ops = append(ops, sink.Op{
			Doc: shard.DocID(fmt.Sprintf("a#%d", i)), Key: "k", Fence: shard.Fence(i + 1), Document: []byte(`{}`),
		})
	}
	first, second := v.Sink(to).Write(t.Context(), ops), v.Sink(to).Write(t.Context(), ops[:20])
	taken := 0
	for i, o := range first {
		_, there, err := to.Get(t.Context(), ops[i].Doc)
		if err != nil || there != (o.Kind == sink.Applied) || !there && o.Kind != sink.Rejected {
			t.Errorf("%s: %s, there: %v, %v", ops[i].Doc, o.Kind, there, err)
		}
		if i < len(second) && (second[i].Kind == sink.Rejected) != (o.Kind == sink.Rejected) {
			t.Errorf("%s: first %s, then %s", ops[i].Doc, o.Kind, second[i].Kind)
		}
		if there {
			taken++
		}
	}
	if taken < 8 || taken > 32 {
		t.Errorf("%d of 40 taken", taken)
	}
}
