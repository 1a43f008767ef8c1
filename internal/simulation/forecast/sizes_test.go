// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/simulation/sim"
)

// sized simulates 500 events a second with one function of that size. The others have their
// defaults.
func sized(t *testing.T, set func(*config.Memory, config.Size), megabytes int) sim.Summary {
	t.Helper()
	l := Steady()
	l.Rate, l.Burst, l.Documents, l.Lasting = 500, 5, 20_000, Span(2*time.Minute)
	c := settings()
	set(&c.Memory, config.Size(megabytes)<<20)
	r, err := Run(t.Context(), sim.Options{
		Config: c, Seed: 1, Faults: sim.NoFaults, Upstream: l.Upstream(1), Pollers: 5,
	}, nil)
	if err != nil || len(r.Violations) > 0 {
		t.Fatal(err, r.Violations)
	}
	return r.Summary(sim.NoFaults)
}

// TestMoreMemoryBuysNoFreshness holds the table of sizes in docs/cost.md. The defaults are larger
// than the cheapest sizes, because the simulator has small documents and no hostile senders.
func TestMoreMemoryBuysNoFreshness(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("ten simulations of 60,000 events")
	}
	receive := func(m *config.Memory, s config.Size) { m.Receive = s }
	index := func(m *config.Memory, s config.Size) { m.Index = s }
	var b strings.Builder
	b.WriteString("| memory | receive: p99 | $ a million events | index: p99 | $ a million events |\n|---|---:|---:|---:|---:|\n")
	for _, mb := range []int{128, 256, 512, 1024, 1769} {
		r, i := sized(t, receive, mb), sized(t, index, mb)
		fmt.Fprintf(&b, "| %d MB | %.2f s | %.3f | %.2f s | %.3f |\n", mb, float64(r.Freshness.P99)/1000, r.Bill.PerMillion,
			float64(i.Freshness.P99)/1000, i.Bill.PerMillion)
		for _, s := range []sim.Summary{r, i} {
			if s.Freshness.P99 > 7000 {
				t.Errorf("with %d MB p99 is %d ms, want at most 7000: the page says that memory buys no freshness", mb, s.Freshness.P99)
			}
		}
	}
	t.Log(b.String())
	if *update {
		tree.Generated(t, "docs/cost.md", "sizes", b.String(), true)
	}
}
