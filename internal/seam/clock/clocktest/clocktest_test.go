// SPDX-License-Identifier: Apache-2.0

package clocktest_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/clock/clocktest"
)

func TestAClockThatIsSetKeepsItsMonotonicReading(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	for _, by := range []time.Duration{0, time.Hour, -time.Hour} {
		set := clocktest.SetForward(begin, by)
		if d := set.Sub(begin); d != 0 {
			t.Errorf("set by %s: %s have passed, want none", by, d)
		}
		if d := set.Round(0).Sub(begin.Round(0)); d != by {
			t.Errorf("set by %s: the time of day moved by %s", by, d)
		}
	}
}
