// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"testing"
	"time"
)

// The canary is priced only if there is one. A shorter interval costs more.
func TestACanaryIsPriced(t *testing.T) {
	t.Parallel()
	total := map[time.Duration]float64{}
	for _, every := range []time.Duration{0, 5 * time.Minute, 15 * time.Minute, 24 * time.Hour} {
		c := defaults("archive")
		c.Canary.Every = every
		e := estimate(t, c, nothing())
		total[every] = e.Floor.Total
		found := 0
		for _, i := range e.Floor.Items {
			if i.Service != "Canary" {
				continue
			}
			if found++; i.Dollars <= 0 || i.Dollars > 2 {
				t.Errorf("every %s: %s costs $%.4f", every, i.What, i.Dollars)
			}
		}
		if want := map[bool]int{true: 6}[every > 0]; found != want {
			t.Errorf("every %s: the bill has %d lines of the canary, want %d", every, found, want)
		}
	}
	quarter := total[15*time.Minute] - total[0]
	if quarter < 1.5 || quarter > 3 { // of two sinks
		t.Errorf("a canary each 15 minutes costs $%.2f a month; docs/canary.md says about a dollar a sink", quarter)
	}
	if total[5*time.Minute] <= total[15*time.Minute] || total[15*time.Minute] <= total[24*time.Hour] ||
		total[24*time.Hour] <= total[0] {
		t.Errorf("got %v", total)
	}
}
