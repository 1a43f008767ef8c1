// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/simulation/cost"
	"github.com/lullhq/lull/internal/simulation/sim"
)

// One stack holds every promise at 5,000 events a second, whether AWS begins with two pollers or
// with five, because AWS adds pollers. With a limit on the pollers, a burst is written several
// times and documents are late: the rule live-pollers refuses such settings.
func TestAStackAtFiveThousandASecond(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("four simulations of 100,000 events")
	}
	var b strings.Builder
	b.WriteString("| pollers at first | at most | broken promises | writes a burst | fresh at p50 | at p99 | index runs |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, world := range []struct {
		first, most int
	}{
		{cost.FewestPollers, maxPollers},
		{cost.FirstPollers, maxPollers},
		{cost.FewestPollers, 2},
		{cost.FirstPollers, 5},
	} {
		l := Steady()
		l.Rate, l.Burst, l.Documents, l.Lasting = cost.PartRate, 5, 1_000_000, Span(20*time.Second)
		up := l.Upstream(1)
		r, err := sim.Simulate(t.Context(), sim.Options{
			Config: settings(), Seed: 1, Faults: sim.NoFaults, Upstream: up,
			Pollers: world.first, MostPollers: world.most,
		})
		if err != nil {
			t.Fatal(err)
		}
		s := r.Summary(sim.NoFaults)
		most := fmt.Sprint(world.most)
		if world.most == maxPollers {
			most = "no limit"
		}
		writes := float64(r.Counts.Applied) / float64(r.Counts.Events) * float64(l.Burst)
		fmt.Fprintf(&b, "| %d | %s | %d | %.2f | %.1f s | %.1f s | %d |\n", world.first, most, len(r.Violations),
			writes, float64(s.Freshness.P50)/1000, float64(s.Freshness.P99)/1000, r.Counts.Invocations["index"])
		if len(r.Violations) > 0 {
			t.Errorf("%d to %s pollers: %v", world.first, most, r.Violations)
		}
		if unlimited := world.most == maxPollers; unlimited != (s.Freshness.P99 < 9_000 && writes < 1.05) {
			t.Errorf("%d to %s pollers: %.2f writes a burst, p99 of %d ms", world.first, most, writes, s.Freshness.P99)
		}
	}
	t.Log(b.String())
	tree.Generated(t, "docs/scale.md", "pollers", b.String(), *update)
}
