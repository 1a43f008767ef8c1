package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
)

// returned is what several runs showed whose sink was away and came back.
type returned struct {
	soon   []time.Duration // from sent to written, of what was sent in the first minute after the return
	waited []time.Duration // from the return to written, of what was sent before the return
	pings  time.Duration   // the longest time between two requests or pings to a sink that was away
	worst  int             // requests in one second after the return
}

// comesBack takes the sink away for so long, at another moment of the run for each seed.
func comesBack(t *testing.T, perSecond float64, s Strain, away time.Duration, seeds ...uint64) (all returned) {
	t.Helper()
	for _, seed := range seeds {
		s.DownFrom = recoveryBefore + time.Duration(seed*7)*time.Second
		s.DownTo = s.DownFrom + away
		r := begin(t, Options{
			Config: settings(t, true, func(*config.Config) {}), Seed: seed, Faults: NoFaults, Pollers: 2,
			Timeline: true, Upstream: Steady(seed, perSecond, recoveryDocuments, s.DownTo+10*time.Minute), Strain: s,
		}).Run()
		report(t, r, NoFaults)
		if r.Extremes.Moved+r.Extremes.Letters+r.Extremes.Refusals > 0 {
			t.Errorf("seed %d: %+v, want nothing moved, refused or dead", seed, r.Extremes)
		}
		all.add(r, s)
	}
	return all
}

// add adds a run. The timeline knows seconds.
func (all *returned) add(r Result, s Strain) {
	asked := time.Duration(0) // when it was asked last
	for i, second := range r.Timeline {
		at := time.Duration(i) * time.Second
		if at < s.DownTo {
			if second.Failed > 0 && asked > 0 {
				all.pings = max(all.pings, at-asked)
			}
			if second.Failed > 0 {
				asked = at
			}
			continue
		}
		all.worst = max(all.worst, second.Requests)
		for _, age := range second.Ages {
			switch sent := at - age; {
			case sent < s.DownTo:
				all.waited = append(all.waited, at-s.DownTo)
			case sent < s.DownTo+time.Minute:
				all.soon = append(all.soon, age)
			}
		}
	}
}

// REVIEW E1: after an outage of a minute documents were three to five minutes late, also those that
// were sent when the sink was back.
func TestWhatIsSentAfterAnOutageIsFreshAtOnce(t *testing.T) {
	t.Parallel()
	for _, perSecond := range []float64{0.2, 5} {
		for _, silent := range []bool{false, true} {
			for _, away := range []time.Duration{30 * time.Second, 90 * time.Second, 5 * time.Minute} {
				t.Run(fmt.Sprintf("%g a second, %s, silent %t", perSecond, away, silent), func(t *testing.T) {
					t.Parallel()
					seeds := []uint64{1, 2, 3, 4, 5}
					if testing.Short() || raceEnabled {
						seeds = seeds[:1]
					}
					r := comesBack(t, perSecond, Strain{DownSilent: silent}, away, seeds...)
					soon, waited := at(r.soon, 1), at(r.waited, 1)
					t.Logf("%g a second, away %s, silent %t: sent after the return: %s (median %s); waited: %s (median %s); "+
						"asked %s apart; %d requests in the worst second", perSecond, away, silent, soon, at(r.soon, 0.5), waited,
						at(r.waited, 0.5), r.pings, r.worst)
					if limit := 20 * time.Second; soon > limit {
						t.Errorf("what was sent after the return was written after %s, want %s at most", soon, limit)
					}
					if limit := max(time.Minute, away/2); waited > limit {
						t.Errorf("what waited was written %s after the return, want %s at most", waited, limit)
					}
					if limit := 10 * time.Second; r.pings > limit {
						t.Errorf("asked %s apart, want %s at most", r.pings, limit)
					}
					if limit := 20; r.worst > limit {
						t.Errorf("%d requests in one second after the return, want %d at most", r.worst, limit)
					}
				})
			}
		}
	}
}
