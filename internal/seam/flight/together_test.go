// SPDX-License-Identifier: Apache-2.0

package flight_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// One second of the window is left for rounding the wake up.
func TestOneWakeServesWhatIsDueWithinTheWindowLessASecond(t *testing.T) {
	t.Parallel()
	const first = shard.Micros(1_000_000_000)
	reach := first.Add(9 * time.Second)
	for name, tt := range map[string]struct {
		times []shard.Micros
		want  shard.Micros
	}{
		"nothing else":                            {nil, first},
		"earlier":                                 {[]shard.Micros{first - 1}, first},
		"at the end of the window":                {[]shard.Micros{reach, first}, reach},
		"a microsecond after the end":             {[]shard.Micros{first + 7, reach + 1}, first + 7},
		"in the second that is left for rounding": {[]shard.Micros{first.Add(10 * time.Second)}, first},
	} {
		if got := flight.Together(first, tt.times, 10*time.Second); got != tt.want {
			t.Errorf("%s: wakes %s after the first, want %s", name, got.Sub(first), tt.want.Sub(first))
		}
	}
}
