package sim

import (
	"fmt"
	"testing"
	"time"
)

// A sink that throttles costs at most twice as much as a healthy one. Before flights gave messages
// without a slot back to the queue, it cost six to ten times as much (ADR 0070).
func TestASlowSinkCostsAtMostTwiceAsMuch(t *testing.T) {
	t.Parallel()
	if raceEnabled {
		t.Skip("a minute of simulation")
	}
	seeds, takes, lasting := []uint64{1, 2, 3, 4, 5}, []int{7, 13, 20}, 10*time.Minute
	if testing.Short() {
		seeds, takes, lasting = seeds[:1], takes[1:2], 6*time.Minute
	}
	for _, seed := range seeds {
		healthy := slow{pollers: 5}.seeded(t, seed, lasting).Summary(NoFaults).Bill.PerMillion
		for _, rate := range takes {
			t.Run(fmt.Sprint(rate, " a second, seed ", seed), func(t *testing.T) {
				t.Parallel()
				s := slow{takes: rate, pollers: 5}
				r := s.seeded(t, seed, lasting)
				all := r.between(slowLearning, lasting)
				of, refused := s.goodput(all)
				bill := r.Summary(NoFaults).Bill.PerMillion
				if of < 0.85 || refused > 0.1 {
					t.Errorf("given %.2f of what it takes, %.3f answered with 429; want at least 0.85, at most 0.1", of, refused)
				}
				if bill > 2*healthy {
					t.Errorf("$%.2f a million events, want at most twice $%.2f", bill, healthy)
				}
				if got := (Extremes{Receives: r.Extremes.Receives}); r.Extremes != got || got.Receives > 30 {
					t.Errorf("%+v, want neither refusals nor dead letters, and thirty receives at most", r.Extremes)
				}
				t.Logf("given %.2f, %.3f answered with 429; written after %s, %s at p99; $%.2f, %.2f times; %d receives",
					of, refused, aged(all, 0.5), aged(all, 0.99), bill, bill/healthy, r.Extremes.Receives)
			})
		}
	}
}
