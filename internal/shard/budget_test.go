// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"testing"

	"github.com/lullhq/lull/internal/shard"
)

// A circuit that opened for a second was most often opened by one request without an answer. When
// lull restarted at the lowest speed after each such opening, one failure in a hundred requests
// delayed a healthy sink by minutes.
func TestASinkGoesOnAsFastAsItsOutageAllows(t *testing.T) {
	t.Parallel()
	now := shard.Micros(1_800_000_000_000_000)
	for level, want := range map[int64]int64{0: 512_000, 1: 512_000, 2: 128_000, 3: 32_000, 4: 16_000, 88: 16_000} {
		if got := shard.Restart(shard.Row{Level: level}, now); got != want {
			t.Errorf("level %d: got a speed of %d thousandths a second, want %d", level, got, want)
		}
	}
	slow := shard.Row{Level: 1, Rate: 20_000, RateTop: 20_000, RateAt: now}
	if got := shard.Restart(slow, now); got != 20_000 {
		t.Errorf("a sink that accepts 20 a second restarts at speed %d", got)
	}
	slow.Rate, slow.RateTop = 1000, 1000
	if got := shard.Restart(slow, now); got != shard.RestartPace/2 {
		t.Errorf("a sink that accepts 1 a second restarts at speed %d, want %d", got, shard.RestartPace/2)
	}
}
