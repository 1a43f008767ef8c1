// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"testing"

	"github.com/lullhq/lull/internal/simulation/price"
)

// A load that one stack cannot hold is shared by several stacks of the same settings.
func TestALoadIsSharedByStacks(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]int{0: 1, 500: 1, 5_000: 1, 5_001: 2, 50_000: 10, 100_000: 20} {
		load := fast()
		load.Rate = rate
		if got := parts(defaults(), load); got != want {
			t.Errorf("%g a second: %d stacks, want %d", rate, got, want)
		}
	}
	slow := defaults()
	slow.SetQuiet(60_000_000_000)
	// Each message is held longer, so one queue has room for fewer than 500 a second.
	if got := parts(slow, fast()); got != 2 {
		t.Errorf("500 a second with a quiet time of a minute: %d stacks, want 2", got)
	}
	load := fast()
	load.Rate, load.Documents = 10_000, 1000
	b := Bill{Items: []price.Item{{Count: 2, Dollars: 3}}, Total: 3, Requests: 2, PerMillion: 5}
	twice := b.times(2)
	if p := load.part(2); p.Rate != 5000 || p.Documents != 500 || twice.Total != 6 || twice.Requests != 4 ||
		twice.Items[0].Count != 4 || twice.Items[0].Dollars != 6 || twice.PerMillion != 5 || b.Items[0].Count != 2 {
		t.Errorf("%+v, %+v of %+v", p, twice, b)
	}
}
