// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/emulation"
)

// TestThreeDaysAwayMoveNoMessageByItsReceiveCount: a sink is down for three days, as long as the
// dead deadline lasts. SQS must not move any message because of its receive count. The number of
// events and SQS's in-flight limit are 100 or 1,000 times smaller than in reality. In both cases
// the queue reaches the limit: at 5 events a second after seven hours, at 500 after four minutes.
// SQS then delivers no further messages. Messages in flight become visible again when their waits
// end, and no message is lost.
func TestThreeDaysAwayMoveNoMessageByItsReceiveCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		perSecond, scale float64
		receives         int // how often a message must be received, at least
	}{
		"5 events a second": {5, 100, 100}, "500 events a second": {500, 1000, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() || raceEnabled {
				t.Skip("three days")
			}
			const from, to, lasting = time.Hour, 73 * time.Hour, 77 * time.Hour
			rates := quietRates()
			rates.InFlight = int(emulation.MaxInFlight / c.scale)
			cfg := settings(t, true, func(*config.Config) {})
			r := begin(t, Options{
				Config: cfg, Seed: 1, Rates: &rates, Pollers: 2,
				Upstream: Steady(1, c.perSecond/c.scale, 200, lasting), Strain: Strain{DownFrom: from, DownTo: to},
			}).Run()
			report(t, r, NoFaults)
			if r.Extremes.Moved > 0 || r.Extremes.Refusals > 0 {
				t.Errorf("%+v, want nothing moved and nothing refused", r.Extremes)
			}
			if n, most := r.Extremes.Receives, cfg.Retry.MaxReceiveCount(); n < c.receives || n > most {
				t.Errorf("%d receives of a message at most, want between %d and %d", n, c.receives, most)
			}
			t.Logf("%d messages, %d receives of one at most, %d dead letters, $%.2f a million", r.Counts.Messages,
				r.Extremes.Receives, r.Extremes.Letters, r.Summary(NoFaults).Bill.PerMillion)
		})
	}
}

// TestFourHoursAwayCostLessThanFourHoursOfWork: at 5 events a second, an outage of four hours must
// cost less than four hours of normal work. Messages that waited for the whole outage must be
// written within minutes.
func TestFourHoursAwayCostLessThanFourHoursOfWork(t *testing.T) {
	t.Parallel()
	if testing.Short() || raceEnabled {
		t.Skip("four hours")
	}
	const from, to, lasting = 5 * time.Minute, 245 * time.Minute, 265 * time.Minute
	run := func(s Strain) Result {
		r := begin(t, Options{
			Config: settings(t, true, func(*config.Config) {}), Seed: 1, Faults: NoFaults, Pollers: 2, Timeline: true,
			Upstream: Steady(1, 5, recoveryDocuments, lasting), Strain: s,
		}).Run()
		report(t, r, NoFaults)
		return r
	}
	away, usual := run(Strain{DownFrom: from, DownTo: to}), run(Strain{})
	if cost, without := away.Summary(NoFaults).Bill.Total, usual.Summary(NoFaults).Bill.Total; cost > without {
		t.Errorf("$%.3f, want at most the $%.3f without an outage", cost, without)
	} else {
		t.Logf("$%.3f, without an outage $%.3f: %.2f; %d receives of a message at most", cost, without, cost/without,
			away.Extremes.Receives)
	}
	if away.Extremes.Moved+away.Extremes.Letters+away.Extremes.Refusals > 0 {
		t.Errorf("%+v, want nothing moved, refused or dead", away.Extremes)
	}
	back := returned{}
	back.add(away, Strain{DownFrom: from, DownTo: to})
	if waited, limit := at(back.waited, 1), 6*time.Minute; waited > limit {
		t.Errorf("messages of the outage were written %s after the sink's return, want %s at most", waited, limit)
	} else {
		t.Logf("what waited was written %s after the return", waited)
	}
}
