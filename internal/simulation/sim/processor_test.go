// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/setting"
)

// TestProcessorTimeFollowsMemory: with less memory, a function computes for longer. Without
// Options.Processor, memory changes only the bill.
func TestProcessorTimeFollowsMemory(t *testing.T) {
	t.Parallel()
	of := func(processor bool, memory setting.Size) Result {
		c := settings(t, true, func(*config.Config) {})
		c.Memory.Receive, c.Memory.Index = memory, memory
		r, err := Simulate(t.Context(), Options{
			Config: c, Seed: 1, Faults: NoFaults, Processor: processor, Pollers: 2,
			Upstream: Load{Rate: 5, Burst: 5, Spread: time.Second, Documents: 50, Lasting: time.Minute}.Upstream(1),
		})
		if err != nil || len(r.Violations) > 0 {
			t.Fatal(err, r.Violations)
		}
		return r
	}
	worst := func(r Result) time.Duration { return time.Duration(r.Summary(NoFaults).Freshness.P99) }
	small, whole := of(true, 128*setting.MB), of(true, 1769*setting.MB)
	if worst(small) <= worst(whole) {
		t.Errorf("p99 %d ms with 128 MB, and %d ms with a whole processor", worst(small), worst(whole))
	}
	plain, large := of(false, 0), of(false, 2*setting.GB)
	if plain.Hash != large.Hash {
		t.Error("memory changes a run without processor time")
	}
	if a, b := plain.Counts.Usage().LambdaGBSeconds, large.Counts.Usage().LambdaGBSeconds; a >= b {
		t.Errorf("%g GB-seconds with the defaults, and %g with 2 GB", a, b)
	}
}
