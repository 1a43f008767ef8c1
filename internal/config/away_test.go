// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// During the first ten minutes, the circuit stays open for seconds at a time. After that, it stays
// open for backoffMax.
func TestASinkIsAskedOftenForTenMinutes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		retry      Retry
		first      []time.Duration
		most, then time.Duration
	}{
		"the defaults": {
			Default().Retry,
			[]time.Duration{1 * second, 2 * second, 4 * second, 7 * second, 7 * second},
			7 * second, minute,
		},
		"a long shortest back-off": {
			Retry{BackoffMin: 20 * second, BackoffMax: minute},
			[]time.Duration{20 * second, 20 * second},
			20 * second, minute,
		},
		"a short longest one": {
			Retry{BackoffMin: 500 * time.Millisecond, BackoffMax: 3 * second},
			[]time.Duration{500 * time.Millisecond, second, 2 * second, 3 * second},
			3 * second, 3 * second,
		},
		"both the same": {Retry{BackoffMin: minute, BackoffMax: minute}, []time.Duration{minute, minute}, minute, minute},
	} {
		for i, want := range c.first {
			if got := c.retry.OpenFor(int64(i + 1)); got != want {
				t.Errorf("%s: open for %s at level %d, want %s", name, got, i+1, want)
			}
		}
		level := int64(1)
		for open := time.Duration(0); open < 10*minute; level++ {
			if got := c.retry.OpenFor(level); got > c.most {
				t.Errorf("%s: open for %s at level %d, %s after the first one, want at most %s", name, got, level, open, c.most)
			}
			open += c.retry.OpenFor(level)
		}
		for _, level := range []int64{level, level + 1, 10_000, math.MaxInt64} {
			if got := c.retry.OpenFor(level); got != c.then {
				t.Errorf("%s: open for %s at level %d, want %s", name, got, level, c.then)
			}
		}
	}
}

// openLevels returns a function at for a sink that is down: every ping fails. The function returns
// the sink's health row at a given time after the circuit first opened.
func openLevels(r Retry, first shard.Micros) (at func(since time.Duration) shard.Row) {
	health := shard.Row{Level: 1, OpenUntil: first.Add(r.OpenFor(1))}
	return func(since time.Duration) shard.Row {
		for health.OpenUntil < first.Add(since) {
			health.Level++
			health.OpenUntil = health.OpenUntil.Add(r.OpenFor(health.Level))
		}
		return health
	}
}

// A waiting message returns within a third of the outage, or soon after the next ping. A message
// that is sent late in the outage returns right after the next ping.
func TestAMessageWaitsForAShareOfTheOutage(t *testing.T) {
	t.Parallel()
	const first = shard.Micros(1e15)
	for since, most := range map[time.Duration]time.Duration{
		minute: 23 * second, 3 * minute: 62 * second, 9 * minute: 3*minute + 3*second, 30 * minute: 4 * minute,
		70 * time.Hour: 4 * minute,
	} {
		r, now := Default().Retry, first.Add(since)
		health := openLevels(r, first)(since)
		ping := health.OpenUntil.Sub(now)
		for _, draw := range []float64{0, 0.5, 0.999} {
			for _, receives := range []int{1, 2} {
				got := r.AwayWait(health, now, false, receives, draw)
				if since < 12*minute && (got < ping+2*second || got > ping+4*second) {
					t.Errorf("receive %d after %s: %s, want 2 to 4 s after the ping in %s", receives, since, got, ping)
				}
			}
			for _, receives := range []int{3, 20} {
				if got := r.AwayWait(health, now, false, receives, draw); got > max(most, ping+4*second) ||
					got < max(most*2/3, ping+2*second) {
					t.Errorf("receive %d after %s: %s, want up to %s and the ping in %s", receives, since, got, most, ping)
				}
			}
			// In an outage of less than 9 minutes, messages of the live lane wait for a shorter time
			// than messages of the bulk lane. In a longer outage, both may wait equally long.
			live, bulk := r.AwayWait(health, now, false, 3, draw), r.AwayWait(health, now, true, 3, draw)
			if bulk < live || bulk == live && since < 9*minute || bulk > max(most*3/2, ping+4*second) {
				t.Errorf("receive 3 after %s: %s in the bulk lane, %s in the live lane", since, bulk, live)
			}
			if got := r.AwayWait(health, now, false, 21, draw); got < 192*second || got > 4*minute {
				t.Errorf("receive 21: %s, want 3.2 to 4 minutes", got)
			}
			if got := r.AwayWait(health, now, false, 111, draw); got < 12*minute || got > AwayMost {
				t.Errorf("receive 111: %s, want 12 to 15 minutes", got)
			}
		}
	}
	// A sink may itself ask for a long wait. Even then, no message waits longer than AwayMost.
	for _, receives := range []int{1, 3, 21, 111} {
		health := shard.Row{Level: 1, OpenUntil: first.Add(2 * time.Hour)}
		if got := Default().Retry.AwayWait(health, first, false, receives, 0.5); got != AwayMost*9/10 {
			t.Errorf("receive %d waits for %s, want 12 to 15 minutes", receives, got)
		}
	}
	// No ping ends a pause, so messages of a paused sink do not wait for a ping.
	paused := shard.Row{PausedAt: first, Level: 1, OpenUntil: first.Add(time.Hour)}
	for since, most := range map[time.Duration]time.Duration{
		20 * second: 10 * second, 5 * minute: 100 * second, time.Hour: 4 * minute,
	} {
		if got := Default().Retry.AwayWait(paused, first.Add(since), false, 1, 0.999); got > most || got < most*9/10 {
			t.Errorf("paused for %s: %s, want %s at most", since, got, most)
		}
	}
}

// Until its dead deadline, no message is received more often than its queue allows. This holds for
// all random waits, and for a message that was sent at any time of the outage.
func TestASinkThatIsAwayUsesUpNoReceives(t *testing.T) {
	t.Parallel()
	const first = shard.Micros(1e15)
	for _, deadline := range []time.Duration{minute, time.Hour, 5 * time.Hour, 72 * time.Hour, 168 * time.Hour} {
		c := Default()
		c.Retry.DeadDeadline = deadline
		for _, sent := range []time.Duration{0, minute, 11 * minute, time.Hour} {
			for _, draw := range []float64{0, 0.5, 0.999} {
				receives, at := 0, openLevels(c.Retry, first)
				for age := time.Duration(0); age < deadline; receives++ {
					now := first.Add(sent + age)
					age += c.Retry.AwayWait(at(sent+age), now, false, receives+1, draw)
				}
				if most := c.Retry.MaxReceiveCount() - spareReceives; receives > most {
					t.Errorf("%s, sent after %s, draw %.1f: %d receives, want at most %d", deadline, sent, draw, receives, most)
				}
			}
		}
	}
}

func TestASinkIsAwayWhenItsCircuitHasBeenOpenForAMinute(t *testing.T) {
	t.Parallel()
	const now = shard.Micros(1e15)
	for name, c := range map[string]struct {
		health shard.Row
		want   bool
	}{
		"closed":              {shard.Row{Level: 9}, false},
		"paused a moment ago": {shard.Row{PausedAt: now.Add(-59 * time.Second)}, false},
		"paused a minute ago": {shard.Row{PausedAt: now.Add(-time.Minute)}, true},
		"paused, so that no flight may probe": {
			shard.Row{PausedAt: now.Add(-time.Minute), Level: 20, OpenUntil: now.Add(-21 * time.Second)}, true,
		},
		"open for seconds":           {shard.Row{Level: 11, OpenUntil: now.Add(time.Second)}, false},
		"open for a minute":          {shard.Row{Level: 12, OpenUntil: now}, true},
		"open as the sink asked":     {shard.Row{Level: 1, OpenUntil: now.Add(2 * time.Minute)}, true},
		"no flight has probed":       {shard.Row{Level: 20, OpenUntil: now.Add(-21 * time.Second)}, false},
		"opened by a clock far fast": {shard.Row{Level: 20, OpenUntil: now.Add(30 * 24 * time.Hour)}, false},
		"probed by a clock far fast": {
			shard.Row{Level: 20, OpenUntil: now.Add(-time.Second), ProbeUntil: now.Add(30 * 24 * time.Hour)}, false,
		},
		"the prober still has time": {shard.Row{Level: 20, OpenUntil: now.Add(-19 * time.Second)}, true},
		"a flight probes": {
			shard.Row{Level: 20, OpenUntil: now.Add(-time.Minute), ProbeUntil: now.Add(-19 * time.Second)}, true,
		},
	} {
		if got := Default().Retry.Away(c.health, now); got != c.want {
			t.Errorf("%s: away: %v, want %v", name, got, c.want)
		}
	}
}
