// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

func TestMarkedSaysWhatARowThatRefusedPARKMakesOfTheDeadLetter(t *testing.T) {
	t.Parallel()
	const now, k = 1000, shard.OrderKey("k2")
	for name, c := range map[string]struct {
		row  shard.Row
		want shard.Mark
		done bool
	}{
		"absent":                          {shard.Row{}, shard.MarkAgain, false},
		"an older version pending":        {shard.Row{Pending: "k1"}, shard.MarkAgain, false},
		"this version pending":            {shard.Row{Pending: k}, shard.MarkAgain, false},
		"a newer version pending":         {shard.Row{Pending: "k3"}, shard.MarkOvertaken, true},
		"an older version committed":      {shard.Row{Committed: "k1"}, shard.MarkAgain, false},
		"this version committed":          {shard.Row{Committed: k}, shard.MarkWritten, true},
		"a newer version committed":       {shard.Row{Committed: "k3", Pending: "k4"}, shard.MarkWritten, true},
		"another dead letter":             {shard.Row{Dead: "k1"}, shard.MarkAgain, false},
		"this dead letter":                {shard.Row{Dead: k, Pending: "k3"}, shard.MarkThere, true},
		"leased":                          {shard.Row{Pending: k, Owner: "t", LeaseUntil: now}, shard.MarkLeased, false},
		"an expired lease":                {shard.Row{Pending: k, Owner: "t", LeaseUntil: now - 1}, shard.MarkAgain, false},
		"leased, a newer version pending": {shard.Row{Pending: "k3", LeaseUntil: now}, shard.MarkOvertaken, true},
		"a newer schema, committed":       {shard.Row{Schema: shard.SchemaVersion + 1, Committed: k}, shard.MarkForeign, false},
	} {
		if got := shard.Marked(c.row, k, now); got != c.want || got.Done() != c.done {
			t.Errorf("%s: mark %d, done %v, want %d and %v", name, got, got.Done(), c.want, c.done)
		}
	}
}

func TestARowWhoseFencesLieAheadIsClaimedOnceNothingElseCounts(t *testing.T) {
	t.Parallel()
	const now, k = shard.Micros(1e12), shard.OrderKey("k2")
	ahead := shard.Row{Pending: k, LeaseUntil: now.Add(2 * shard.MaxAhead)}
	written, claimed := ahead, ahead
	written.LastWrite, claimed.Claimed = now-1, "k3"
	timing := shard.Timing{MinInterval: time.Second}
	for name, c := range map[string]struct {
		row  shard.Row
		want shard.Step
	}{
		"nothing":                 {ahead, shard.Step{Act: shard.ActClaim, Cap: now}},
		"a recent write":          {written, shard.Step{Act: shard.ActWait, Until: now.Add(time.Second) - 1}},
		"a newer version claimed": {claimed, shard.Step{Act: shard.ActWait, Until: now + 7}},
	} {
		got := shard.Decide(c.row, shard.Hold{Key: k}, shard.View{Now: now, Consistent: true, Backoff: now + 7}, timing)
		if got.Why = ""; got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
