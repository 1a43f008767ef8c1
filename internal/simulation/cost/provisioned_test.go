// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/simulation/price"
)

// rowsOf returns the price of a month's rows on demand, and the price with a provisioned capacity
// of which percent is used.
func rowsOf(u price.Usage, load Load, percent float64) (onDemand, kept float64) {
	dollars := func(items []price.Item) (sum float64) {
		for _, i := range items {
			sum += i.Dollars
		}
		return sum
	}
	only := price.Usage{WriteUnits: u.WriteUnits, ReadUnits: u.ReadUnits}
	onDemand = dollars(price.USEast1.Items(only)) + pruneUnits(load)*price.USEast1.ReadUnits/1e6
	load.Used = percent
	c := keptReady()
	alarms := float64(scalingAlarms*len(c.Table.Capacities())) * price.USEast1.AlarmMetric
	return onDemand, dollars(provisioned(c.Table, load, &only)) + alarms
}

// TestThePageSaysFromWhichLoadProvisionedPays: docs/cost.md says from which load on a provisioned
// table costs less.
func TestThePageSaysFromWhichLoadProvisionedPays(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("five simulations")
	}
	var b strings.Builder
	uses := []float64{20, 30, 50, 70}
	fmt.Fprintf(&b, "| events a second, in bursts of 5 | on demand, $ a month |")
	for _, use := range uses {
		fmt.Fprintf(&b, " %.0f %% used |", use)
	}
	fmt.Fprintf(&b, "\n|---|---|---|---|---|---|\n")
	for _, rate := range []float64{0.5, 2, 5, 50, 500} {
		load := fast()
		load.Rate = rate
		e := estimate(t, defaults(), load)
		u := price.Usage{
			WriteUnits: item(t, e.Floor, "write units").Count, ReadUnits: item(t, e.Floor, "read units").Count,
		}
		onDemand, _ := rowsOf(u, load, 50)
		fmt.Fprintf(&b, "| %g | %.2f |", rate, onDemand)
		for _, use := range uses {
			_, kept := rowsOf(u, load, use)
			mark := ""
			if kept < onDemand {
				mark = "**"
			}
			fmt.Fprintf(&b, " %s%.2f%s |", mark, kept, mark)
		}
		b.WriteString("\n")
		if _, kept := rowsOf(u, load, 50); rate >= 5 && kept >= onDemand || rate < 1 && kept <= onDemand {
			t.Errorf("at %g a second, half used: $%.2f, on demand %.2f", rate, kept, onDemand)
		}
	}
	shows(t, "provisioned", b.String())
}

// TestACapacityIsPaidByTheHour: a capacity costs the same whether it is used or not. The bill has
// at least the minimum capacity. A lower average use needs a larger capacity.
func TestACapacityIsPaidByTheHour(t *testing.T) {
	t.Parallel()
	table, load := keptReady().Table, nothing()
	hours := func(units, used float64) float64 {
		u := price.Usage{WriteUnits: units, ReadUnits: units}
		load.Used = used
		items := provisioned(table, load, &u)
		if u != (price.Usage{}) {
			t.Errorf("%+v is billed by request, too", u)
		}
		return items[0].Count
	}
	for _, tt := range []struct{ units, used, want float64 }{
		{0, 50, 5 * 720}, {36e6, 100, 10_000}, {36e6, 50, 20_000}, {36e6, 0, 20_000},
	} {
		if got := hours(tt.units, tt.used); got != tt.want {
			t.Errorf("%g units, %g %% used: %g hours, want %g", tt.units, tt.used, got, tt.want)
		}
	}
}
