package config

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// No draw of the waits makes a message of an age below its dead deadline be received more often
// than its queue allows.
func TestASinkThatIsAwayUsesUpNoReceives(t *testing.T) {
	t.Parallel()
	for _, deadline := range []time.Duration{time.Minute, time.Hour, 5 * time.Hour, 72 * time.Hour, 168 * time.Hour} {
		c := Default()
		c.Retry.DeadDeadline = deadline
		for _, draw := range []float64{0, 0.5, 0.999} {
			receives := 0
			for age := time.Duration(0); age < deadline; receives++ {
				age += AwayWait(receives+1, draw)
			}
			if most := c.MaxReceiveCount() - spareReceives; receives > most {
				t.Errorf("%s, draw %.1f: %d receives, want at most %d", deadline, draw, receives, most)
			}
		}
	}
	if got := AwayWait(91, 0.999); got > AwayMost {
		t.Errorf("waits for %s, want at most %s", got, AwayMost)
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
		"paused, and nobody may probe": {
			shard.Row{PausedAt: now.Add(-time.Minute), Level: 9, OpenUntil: now.Add(-21 * time.Second)}, true,
		},
		"for seconds":                 {shard.Row{Level: 6, OpenUntil: now.Add(time.Second)}, false},
		"for a minute":                {shard.Row{Level: 7, OpenUntil: now}, true},
		"for as long as it asked":     {shard.Row{Level: 1, OpenUntil: now.Add(2 * time.Minute)}, true},
		"somebody has to probe":       {shard.Row{Level: 9, OpenUntil: now.Add(-21 * time.Second)}, false},
		"a clock far ahead opened it": {shard.Row{Level: 9, OpenUntil: now.Add(30 * 24 * time.Hour)}, false},
		"a clock far ahead probes": {
			shard.Row{Level: 9, OpenUntil: now.Add(-time.Second), ProbeUntil: now.Add(30 * 24 * time.Hour)}, false,
		},
		"its prober has some time": {shard.Row{Level: 9, OpenUntil: now.Add(-19 * time.Second)}, true},
		"somebody probes": {
			shard.Row{Level: 9, OpenUntil: now.Add(-time.Minute), ProbeUntil: now.Add(-19 * time.Second)}, true,
		},
	} {
		if got := Default().Retry.Away(c.health, now); got != c.want {
			t.Errorf("%s: away: %v, want %v", name, got, c.want)
		}
	}
}
