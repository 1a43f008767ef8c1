package sim

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/emulation"
)

// Three days away, as long as the dead deadline lasts: SQS moves no message by its receive count.
// Events, and what SQS lets be in flight, are a hundredth or a thousandth of real ones. Either way
// the queue reaches the limit: at 5 events a second after seven hours, at 500 after four minutes.
// SQS delivers no more then. What is in flight comes back as its waits end, and nothing is lost.
func TestThreeDaysAwayMoveNoMessageByItsReceiveCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		perSecond, scale float64
		receives         int // of a message, that it has to come to
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
			if n, most := r.Extremes.Receives, cfg.MaxReceiveCount(); n < c.receives || n > most {
				t.Errorf("%d receives of a message at most, want between %d and %d", n, c.receives, most)
			}
			t.Logf("%d messages, %d receives of one at most, %d dead letters, $%.2f a million", r.Counts.Messages,
				r.Extremes.Receives, r.Extremes.Letters, r.Summary(NoFaults).Bill.PerMillion)
		})
	}
}
