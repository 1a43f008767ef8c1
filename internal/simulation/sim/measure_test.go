// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
)

// bursts is an upstream of exact bursts. Each document gets two bursts, a minute apart. Each burst
// has ten versions within two seconds, in random order.
func bursts(seed uint64, docs int) (Upstream, int) {
	const versions, twice = 10, 2
	d := newDice(seed, 0x62757273)
	var up Upstream
	for i := range docs {
		at := d.upTo(20 * time.Second)
		for b := range twice {
			for v := range versions {
				body := fmt.Sprintf(`{"type":"doc.changed","subject":"doc-%d","sequence":"%d","data":{"title":"%d"}}`,
					i, b*versions+v+1, v)
				up.Arrivals = append(up.Arrivals, Arrival{
					At:      at + time.Duration(b)*time.Minute + d.upTo(2*time.Second),
					Message: queue.Outgoing{Body: body},
				})
			}
		}
	}
	InOrder(up.Arrivals)
	up.Calm = 10 * time.Minute
	return up, docs * twice
}

// measured has the figures of several simulated runs of bursts.
type measured struct {
	bursts    int
	applied   int64
	claims    int64
	commits   int64
	admits    int64
	refused   int64
	freshness []time.Duration
}

func measure(t *testing.T, level Level, worlds uint64) measured {
	t.Helper()
	var m measured
	for seed := uint64(1); seed <= worlds; seed++ {
		up, n := bursts(seed, 20)
		even := seed * 14 // default settings, and a sink with versions
		r := build(t, even, level, func(o *Options) { o.Seed, o.Upstream, o.Pollers = seed, up, 1 }).Run()
		report(t, r, level)
		m.bursts += n
		m.applied += r.Counts.Applied
		m.claims += r.Counts.Writes["CLAIM"] + r.Counts.Writes["CLAIM again"]
		m.commits += r.Counts.Writes["COMMIT"] + r.Counts.Writes["COMMIT, newer waiting"]
		m.admits += r.Counts.Writes["ADMIT"]
		m.refused += r.Counts.Refused
		m.freshness = append(m.freshness, r.Freshness...)
	}
	return m
}

func TestWithoutFaultsABurstIsOneClaimOneWriteAndOneCommit(t *testing.T) {
	t.Parallel()
	m := measure(t, NoFaults, 5)
	if n := int64(m.bursts); m.claims != n || m.applied != n || m.commits != n {
		t.Errorf("%d bursts: %d claims, %d sink writes, %d commits, want one each", n, m.claims, m.applied, m.commits)
	}
	if per := float64(m.admits) / float64(m.bursts); per > 2.2 {
		t.Errorf("%.2f ADMITs a burst, want about one for each batch that it meets", per)
	}
	// Design section 3 promises quiet + window + 1 s at p99. In this run, no version may be slower.
	if got, limit := at(m.freshness, 1), 8*time.Second; got > limit {
		t.Errorf("the slowest version was written after %s, want at most %s", got, limit)
	}
	t.Logf("%d bursts: p50 %s, max %s; %.2f ADMITs a burst", m.bursts, at(m.freshness, 0.5),
		at(m.freshness, 1), float64(m.admits)/float64(m.bursts))
}

// TestWhoLeavesAFlightComesBackStale checks ADR 0028. A message that leaves its flight behind a
// newer version returns after the newer version is committed. Such a message is received twice and
// held once, so leaving saves cost.
func TestWhoLeavesAFlightComesBackStale(t *testing.T) {
	t.Parallel()
	up := Steady(1, 20, 200, 5*time.Minute)
	w := build(t, 14, NoFaults, func(o *Options) { o.Upstream, o.Pollers = up, 2 })
	r := w.Run()
	report(t, r, NoFaults)
	left, stale := w.coverage[step(journal.LeftSuperseded)], w.coverage[step(journal.Stale)]
	if left < len(up.Arrivals)/20 || stale < left || stale > left*21/20 || r.Extremes.Receives != 2 {
		t.Errorf("of %d messages %d left their flight and %d returned stale, received %d times at most; want many, all and 2",
			len(up.Arrivals), left, stale, r.Extremes.Receives)
	}
	t.Logf("%d of %d messages left, $%.2f a million", left, len(up.Arrivals), r.Summary(NoFaults).Bill.PerMillion)
}

func TestUnderTheStandardMixWritesStayFewAndFresh(t *testing.T) {
	t.Parallel()
	m := measure(t, Standard, seeds(50))
	if per := float64(m.applied) / float64(m.bursts); per > 1.15 {
		t.Errorf("%.3f sink writes a burst, want at most 1.15", per)
	}
	if got := at(m.freshness, 0.99); got > time.Minute {
		t.Errorf("p99 of freshness is %s, want at most a minute", got)
	}
	t.Logf("%d bursts: %.3f writes a burst, p50 %s, p99 %s, max %s", m.bursts, float64(m.applied)/float64(m.bursts),
		at(m.freshness, 0.5), at(m.freshness, 0.99), at(m.freshness, 1))
}
