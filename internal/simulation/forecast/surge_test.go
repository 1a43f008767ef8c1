// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/simulation/cost"
	"github.com/lullhq/lull/internal/simulation/sim"
)

var update = flag.Bool("update", false, "write the figures of docs/cost.md again")

// surged simulates a load that grows after a quarter of an hour.
func surged(t *testing.T, factor int) sim.Result {
	t.Helper()
	l := Steady()
	l.Rate, l.Burst, l.Lasting, l.Surge = 10, 5, Span(35*time.Minute), fmt.Sprintf("%d@15m", factor)
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	c := settings()
	c.Table.Billing = config.Provisioned
	r, err := Run(t.Context(), sim.Options{
		Config: c, Seed: 1, Faults: sim.NoFaults, Upstream: l.Upstream(1), Pollers: cost.FirstPollers, Timeline: true,
	}, nil)
	if err != nil || len(r.Violations) > 0 {
		t.Fatal(err, r.Violations)
	}
	return r
}

// TestASurgeOnAProvisionedTable: DynamoDB's burst capacity covers a load that doubles or triples,
// until auto scaling acts. A larger surge is throttled for some minutes, but loses no event.
func TestASurgeOnAProvisionedTable(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("five simulations of 35 minutes")
	}
	var b strings.Builder
	b.WriteString("| the load becomes | p99 before | worst p99 of a minute | minutes with a p99 above 9 s | writes throttled |\n" +
		"|---|---|---|---|---|\n")
	for _, factor := range []int{1, 2, 3, 4, 8} {
		r := surged(t, factor)
		var before, worst time.Duration
		above := 0
		for _, p := range sim.Points(r.Timeline[:15*60], 15) {
			before = max(before, p.P99)
		}
		for _, p := range sim.Points(r.Timeline[15*60:], (len(r.Timeline)-15*60+59)/60) {
			worst = max(worst, p.P99)
			if p.P99 > 9*time.Second {
				above++
			}
		}
		fmt.Fprintf(&b, "| %d times as much | %.1f s | %.1f s | %d | %d |\n", factor, before.Seconds(), worst.Seconds(), above,
			r.Writes.Throttled)
		if calm := factor <= 3; calm != (r.Writes.Throttled == 0) || calm != (worst < 9*time.Second) {
			t.Errorf("%d times as much: p99 %s, %d throttled", factor, worst, r.Writes.Throttled)
		}
	}
	t.Log(b.String())
	if *update {
		tree.Generated(t, "docs/cost.md", "surge", b.String(), true)
	}
}
