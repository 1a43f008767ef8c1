// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"math"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// An invocation with a wrong clock writes nothing: no lease, no fence, nothing else that other
// flights wait for. Another invocation does the turn.
func TestAnInvocationWhoseClockIsOffDoesNothing(t *testing.T) {
	type row struct {
		by      time.Duration
		entered bool // the state machine says when it entered the turn
		off     bool
	}
	usecasetest.Table(t, stage{}.play, map[string]row{
		"ahead by a month":                          {30 * 24 * time.Hour, true, true},
		"ahead by more than lull trusts":            {clock.Trust + time.Second, true, true},
		"behind by a month":                         {-30 * 24 * time.Hour, true, true},
		"ahead by a minute":                         {time.Minute, true, false},
		"behind by a minute":                        {-time.Minute, true, false},
		"ahead by a month, an older state machine":  {30 * 24 * time.Hour, false, true},
		"ahead by an hour, an older state machine":  {time.Hour, false, false},
		"behind by an hour, an older state machine": {-time.Hour, false, true},
		"as late as a retried turn may come":        {4 * time.Minute, true, false},
	}, func(b *bench, c row) {
		s := b.hold(put("a", 1))
		time.Sleep(time.Until(s.Wake()))
		s.Started = now()
		if c.entered {
			s.Entered = now()
		}
		before := b.Row(doc("a"))
		b.clock = clock.Skewed{Clock: clock.System{}, By: c.by}
		next, _, err := b.invoke(s)
		if (err != nil) != c.off {
			b.Fatalf("got %v, want an error: %t", err, c.off)
		}
		want := 0
		if c.off {
			want = 1
			if r := b.Row(doc("a")); r != before || next.Done || next.WakeAt != s.WakeAt {
				b.Errorf("row %+v, state %+v: want neither changed", r, next)
			}
		}
		b.Noted(journal.ClockOff, want)
		if c.off {
			b.clock = clock.System{}
			b.delivers(s, 1, "a", "1")
		}
	})
}

// If a machine's clock is behind, but still trusted, its flight does not wake again and again. The
// state machine sleeps by its own clock, for as long as the turn meant.
func TestAFlightSleepsByTheStateMachinesClock(t *testing.T) {
	express := stage{cfg: func(c *config.Config) { c.Flight.Kind = config.FlightExpress }}
	usecasetest.Table(t, express.play, map[string]time.Duration{
		"the same clock": 0, "behind by a minute": time.Minute, "behind by three minutes": 3 * time.Minute,
	}, func(b *bench, behind time.Duration) {
		s := b.hold(put("a", 1))
		time.Sleep(time.Until(s.Wake()))
		b.leased(doc("a"), 8*time.Second)
		s.Started, s.Entered = now(), now()
		b.clock = clock.Skewed{Clock: clock.System{}, By: -behind}
		next, _, err := b.invoke(s)
		if err != nil || next.Done {
			b.Fatalf("got %v, %v", next, err)
		}
		want := max(behind, 8*time.Second) // not due yet by that clock, or still leased
		if in := time.Until(next.Wake()); in < want || in > want+2*time.Second {
			b.Errorf("wakes in %s, want %s", in, want)
		}
		b.clock = clock.System{}
		b.delivers(next, 3, "a", "1")
	})
}

// The time that a turn waits while earlier tries fail is not taken for a wrong clock.
func TestATurnThatIsTriedAgainLateIsTaken(t *testing.T) {
	stage{cfg: func(c *config.Config) {
		c.Flight.Kind, c.Flight.AmbiguousRetry = config.FlightStandard, 3*time.Minute
	}}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		time.Sleep(time.Until(s.Wake()))
		s.Entered = now()
		time.Sleep(2 * (b.Config.Index.Timeout + b.Config.Flight.AmbiguousRetry))
		if _, _, err := b.invoke(s); err != nil {
			b.Error(err)
		}
		b.Noted(journal.ClockOff, 0)
		b.holds("a", "1")
	})
}

// A row that a wrong clock wrote stays usable: the fences in it still rise, and no document waits
// until the clocks reach the time in the row.
func TestARowWhoseFencesLieAheadIsWrittenAllTheSame(t *testing.T) {
	const month = 30 * 24 * time.Hour
	type row struct {
		row    func(r *shard.Row, ahead shard.Micros)
		script []memorysink.Answer
	}
	usecasetest.Table(t, stage{}.play, map[string]row{
		"the last write":                  {func(r *shard.Row, ahead shard.Micros) { r.LastWrite = ahead }, nil},
		"the end of a lease given back":   {func(r *shard.Row, ahead shard.Micros) { r.LeaseUntil = ahead }, nil},
		"the last write, then a throttle": {func(r *shard.Row, ahead shard.Micros) { r.LastWrite = ahead }, []memorysink.Answer{throttled()}},
		"the last write, then no answer":  {func(r *shard.Row, ahead shard.Micros) { r.LastWrite = ahead }, []memorysink.Answer{{Outcome: sink.Outcome{Kind: sink.Unknown, Reason: "time-out"}, Apply: true}}},
	}, func(b *bench, c row) {
		b.fly(b.hold(put("a", 1)), 1)
		ahead := now().Add(month)
		b.Change(doc("a"), func(r *shard.Row) { c.row(r, ahead) })
		b.sink.Write(b.Context(), []sink.Op{{ // written with the time of the wrong clock
			Doc: doc("a"), Kind: shard.Put, Fence: shard.Fence(ahead), Key: b.key("a", 1), Version: "1",
			Document: []byte(`{}`),
		}})
		b.sink.Script(doc("a"), c.script...)
		last := ahead
		for v := 2; v <= 4; v++ {
			sent := time.Now()
			b.fly(b.hold(put("a", v)), 10)
			b.holds("a", string(rune('0'+v)))
			if took := time.Since(sent); took > time.Minute {
				b.Errorf("version %d took %s", v, took)
			}
			r := b.Row(doc("a"))
			if r.LastWrite <= last || r.LastWrite > ahead.Add(time.Second) || r.Owner != "" {
				b.Errorf("row %+v, want a fence after %d and near it", r, last)
			}
			last = r.LastWrite
		}
		if n := len(b.Notes.Of(journal.ClockOff)); n < 3 {
			b.Errorf("%d notes, want one for each claim", n)
		}
		b.Noted(journal.SinkNewer, 0)
		b.inQueue(0)
		// The real clocks reach the time of the wrong clock: from then on the fences are times
		// again.
		time.Sleep(month + time.Minute)
		b.delivers(b.hold(put("a", 5)), 2, "a", "5")
		if r := b.Row(doc("a")); r.LastWrite < now().Add(-time.Minute) {
			b.Errorf("row %+v, want the time of its last write", r)
		}
	})
}

// At the largest possible fence nothing overflows: the row waits for an operator.
func TestARowAtTheEndOfItsFencesIsNotClaimed(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		b.Change(doc("a"), func(r *shard.Row) { r.LastWrite = math.MaxInt64 })
		s = b.turn(s)
		b.Noted(journal.Claimed, 0)
		if s.Done {
			b.Error("the message left the flight, want it to stay")
		}
	})
}
