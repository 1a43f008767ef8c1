// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

func TestRunsThatWereMissedAreNoted(t *testing.T) {
	t.Parallel()
	const every = 5 * time.Minute
	start := shard.MicrosOf(time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC))
	var c cursors
	for _, step := range []struct {
		name  string
		at    time.Duration
		since time.Duration // Since after the start of the test; negative for never
	}{
		{"the first run", 0, -1},
		{"the next run", every, -1},
		{"one run was missed, because the rule fired late", 3 * every, -1},
		{"two runs were missed, because the table was away", 6 * every, 6 * every},
		{"the next run keeps Since", 7 * every, 6 * every},
		{"away again", 20 * every, 20 * every},
	} {
		now := start.Add(step.at)
		c.missed(now, every)
		want := shard.Micros(0)
		if step.since >= 0 {
			want = start.Add(step.since)
		}
		if c.Since != want || c.Ended != now {
			t.Errorf("%s: since %d, ended %d, want %d and %d", step.name, c.Since, c.Ended, want, now)
		}
	}
}
