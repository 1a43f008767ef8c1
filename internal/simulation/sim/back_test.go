// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
)

// returned is the result of several runs in which the sink was down and returned.
type returned struct {
	soon   []time.Duration // time from sent to written, of the messages sent in the first minute after the return
	waited []time.Duration // time from the return to written, of the messages sent before the return
	pings  time.Duration   // the longest time between two requests or pings to a sink that was down
	worst  int             // the most requests in one second after the return
}

// comesBack takes the sink down for a given time. Each seed starts the outage at another moment.
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

// add adds the result of a run. The resolution of the timeline is one second.
func (all *returned) add(r Result, s Strain) {
	asked := time.Duration(0) // when the sink was asked last
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

// TestWhatIsSentAfterAnOutageIsFreshAtOnce: finding E1 of a review. After an outage of a minute,
// documents were three to five minutes late, even if they were sent after the sink's return.
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
						t.Errorf("messages sent after the sink's return were written after %s, want %s at most", soon, limit)
					}
					if limit := max(time.Minute, away/2); waited > limit {
						t.Errorf("messages of the outage were written %s after the sink's return, want %s at most", waited, limit)
					}
					if limit := 10 * time.Second; r.pings > limit {
						t.Errorf("the sink was asked %s apart, want %s at most", r.pings, limit)
					}
					if limit := 20; r.worst > limit {
						t.Errorf("%d requests in one second after the return, want %d at most", r.worst, limit)
					}
				})
			}
		}
	}
}
