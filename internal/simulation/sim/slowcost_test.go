// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/setting"
)

// TestASlowSinkCostsAtMostTwiceAsMuch: a sink that throttles costs at most twice as much as a
// healthy one. Such a sink cost six to ten times as much before flights gave messages without a
// slot back to the queue (ADR 0070).
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

// TestASlowSinkKeepsNoOtherFromBeingFresh: a slow sink must not make the other sinks of its
// collection late.
func TestASlowSinkKeepsNoOtherFromBeingFresh(t *testing.T) {
	t.Parallel()
	lasting := 6 * time.Minute
	if testing.Short() || raceEnabled {
		lasting = 2 * time.Minute
	}
	w := begin(t, Options{
		Config: settings(t, true, func(cfg *config.Config) {
			fanOut(cfg)
			s, rate := cfg.Sinks["search"], setting.Rate(2*float64(setting.OncePerSecond))
			s.MaxDocumentsPerSecond = &rate
			cfg.Sinks["search"] = s
		}),
		Seed: 1, Faults: NoFaults, Pollers: 2, Upstream: Steady(1, 10, 200, lasting),
	})
	report(t, w.Run(), NoFaults)
	most := config.Default().Debounce.MaxWait + config.Default().Debounce.CapGrace + 5*time.Second
	if fresh := slices.Max(w.freshIn["vectors"]); fresh > most {
		t.Errorf("vectors was %s behind, want at most %s", fresh, most)
	}
	if slow := slices.Max(w.freshIn["search"]); slow <= most {
		t.Errorf("search was %s behind: it was not slow", slow)
	}
}
