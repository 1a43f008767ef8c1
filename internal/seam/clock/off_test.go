// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
)

func TestOffReportsOnlyDifferencesBeyondTrust(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		happened, since, want time.Duration // happened is how long ago the event was
	}{
		"just now":                    {0, 0, 0},
		"a little while ago":          {clock.Trust, 0, 0},
		"longer ago than it may be":   {clock.Trust + 1, 0, clock.Trust + 1},
		"as long ago as it may be":    {clock.Trust + time.Hour, time.Hour, 0},
		"a month ago":                 {720*time.Hour + time.Hour, time.Hour, 720 * time.Hour},
		"in a little while":           {-clock.Trust, 0, 0},
		"in a time that is to come":   {-clock.Trust - 1, time.Hour, -clock.Trust - 1},
		"in a time that is far ahead": {-720 * time.Hour, 0, -720 * time.Hour},
	} {
		if got := clock.Off(now, now.Add(-c.happened), c.since); got != c.want {
			t.Errorf("%s: off by %s, want %s", name, got, c.want)
		}
	}
	if got := clock.Off(now, time.Time{}, 0); got != 0 {
		t.Errorf("without a time: off by %s, want 0", got)
	}
}
