// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// windowed adds collections with different windows: one with the defaults, one with a quiet window
// of five minutes, and one whose documents are written at most once in ten minutes.
func windowed(cfg *config.Config) {
	slow, pace := 5*time.Minute, 10*time.Minute
	cfg.Collections = map[string]config.Collection{
		"content": {}, "slow": {Quiet: &slow, ExpectedRate: 20}, "paced": {MinInterval: &pace, ExpectedRate: 20},
	}
	cfg.DefaultCollection = "content"
	if cfg.Retry.DeadDeadline < time.Hour {
		cfg.Retry.DeadDeadline += time.Hour // much longer than the windows
	}
}

// beside returns the simulated run of a seed with such settings. The documents change in bursts,
// and again within the hour.
func beside(t testing.TB, seed uint64, level Level) *World {
	t.Helper()
	cfg := settings(t, seed%2 == 0, func(cfg *config.Config) { vary(seed, cfg); windowed(cfg) })
	d := newDice(seed, 0x77696e64)
	up := write(seed, sourcesOf(t, cfg), shape{
		docs: 2, collections: []string{"slow", "slow", "paced"}, more: d.IntN(3), over: 40 * time.Minute,
	})
	return begin(t, Options{Config: cfg, Seed: seed, Faults: level, Upstream: up})
}

// TestEveryPromiseHoldsWhereWindowsAreLong checks point 1 of issue 13: short and long windows
// together, a long minimal interval, both kinds of executions, and every failure of swarm.
func TestEveryPromiseHoldsWhereWindowsAreLong(t *testing.T) {
	t.Parallel()
	var executions, standard int64
	for w := range runs(t, 500, Swarm, func(seed uint64) *World { return beside(t, seed, Swarm) }) {
		executions, standard = executions+w.counts.Executions, standard+w.counts.Standard
	}
	t.Logf("%d executions, %d of them Standard", executions, standard)
	if standard == 0 || standard == executions {
		t.Errorf("%d of %d executions are Standard, want both kinds", standard, executions)
	}
}

// mixed is an upstream of bursts in two collections. Each document gets five versions within two
// seconds.
func mixed(seed uint64, collections []string, docs int, lasting time.Duration) Upstream {
	d := newDice(seed, 0x6d697865)
	var up Upstream
	for i := range docs {
		at, collection := d.upTo(lasting), collections[i%len(collections)]
		for v := range 5 {
			body := fmt.Sprintf(`{"type":"doc.changed","collection":%q,"subject":"doc-%d","sequence":"%d","data":{"title":"%d"}}`,
				collection, i, v+1, v)
			up.Arrivals = append(up.Arrivals, Arrival{
				At: at + d.upTo(2*time.Second), Message: queue.Outgoing{Body: body},
			})
		}
	}
	InOrder(up.Arrivals)
	up.Calm = lasting
	return up
}

// TestWindowsBesideEachOtherAreFreshEachInItsTime: each collection is as fresh as its own window
// promises. The long window makes the short one neither slower nor more expensive in writes.
func TestWindowsBesideEachOtherAreFreshEachInItsTime(t *testing.T) {
	t.Parallel()
	var fresh [2]map[shard.Collection][]time.Duration
	for i, collections := range [][]string{{"content", "slow"}, {"content"}} {
		cfg := settings(t, true, windowed)
		up := mixed(1, collections, 400/(2-len(collections)+1), 20*time.Minute)
		w := begin(t, Options{Config: cfg, Seed: 1, Faults: NoFaults, Upstream: up, Pollers: 2})
		r := w.Run()
		report(t, r, NoFaults)
		if bursts := int64(len(up.Arrivals) / 5); r.Counts.Applied != bursts {
			t.Errorf("%d sink writes for %d bursts", r.Counts.Applied, bursts)
		}
		fresh[i] = w.freshBy
	}
	for _, collection := range []shard.Collection{"content", "slow"} {
		cfg := settings(t, true, windowed)
		promise := cfg.Fresh(string(collection))
		all := fresh[0][collection]
		p99, most := at(all, 0.99), at(all, 1)
		t.Logf("%s: %d versions, p50 %s, p99 %s, max %s; promised %s", collection, len(all), at(all, 0.5), p99, most, promise)
		if p99 > promise {
			t.Errorf("%s: p99 %s, promised %s", collection, p99, promise)
		}
	}
	alone, beside := at(fresh[1]["content"], 0.99), at(fresh[0]["content"], 0.99)
	t.Logf("content alone: p99 %s", alone)
	if beside > alone+100*time.Millisecond {
		t.Errorf("p99 of the short window is %s beside the long one, %s alone", beside, alone)
	}
}

// TestALostFlightComesBackByItsOwnWindow: a lost flight of a short window is recovered as fast as
// without the long window. A lost flight of the long window is recovered within the setting
// recovery after its window ends.
func TestALostFlightComesBackByItsOwnWindow(t *testing.T) {
	t.Parallel()
	all := map[shard.Collection][]time.Duration{}
	cfg := settings(t, true, windowed)
	for seed := uint64(1); seed <= 20; seed++ {
		rates := quietRates()
		rates.FlightLost = 0.1
		up := mixed(seed, []string{"content", "slow"}, 40, 10*time.Minute)
		up.Calm = 40 * time.Minute // the failures last as long as any message waits
		w := begin(t, Options{Config: cfg, Seed: seed, Rates: &rates, Upstream: up, Pollers: 2})
		report(t, w.Run(), NoFaults)
		for collection, fresh := range w.freshBy {
			all[collection] = append(all[collection], fresh...)
		}
	}
	for collection, fresh := range all {
		// A tenth of the flights was lost once, a hundredth twice.
		by := at(fresh, 0.95) - cfg.Fresh(string(collection))
		t.Logf("%s: p95 %s beyond its window", collection, by)
		if by < 20*time.Second || by > cfg.Recovery {
			t.Errorf("%s: %s beyond its window, want a lost flight, and at most the recovery of %s", collection, by, cfg.Recovery)
		}
	}
}

// TestADocumentThatNeverStopsHoldsWhatSynthCounts: a document that changes all the time holds its
// messages until the cap. At the end, all these messages are in flight, as synth counts.
func TestADocumentThatNeverStopsHoldsWhatSynthCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		quiet   time.Duration
		most    time.Duration // how long synth counts a message as in flight
		perHold float64       // the smallest share of that count that the peak reaches
	}{
		"a long window": {5 * time.Minute, 3*time.Second + 20*time.Minute + 10*time.Second + 3*time.Second, 0.9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := settings(t, true, func(cfg *config.Config) { cfg.SetQuiet(c.quiet) })
			const perSecond = 2
			var up Upstream
			for n := range int((50 * time.Minute).Seconds() * perSecond) {
				body := fmt.Sprintf(`{"type":"doc.changed","subject":"hot","sequence":"%d","data":{"title":"%d"}}`, n+1, n)
				up.Arrivals = append(up.Arrivals, Arrival{
					At: time.Duration(n) * time.Second / perSecond, Message: queue.Outgoing{Body: body},
				})
			}
			up.Calm = 50 * time.Minute
			w := begin(t, Options{Config: cfg, Seed: 1, Faults: NoFaults, Upstream: up, Pollers: 1, Timeline: true})
			r := w.Run()
			report(t, r, NoFaults)
			peak := 0
			for _, s := range r.Timeline {
				peak = max(peak, s.Waiting)
			}
			counted := perSecond * c.most.Seconds()
			t.Logf("%d messages in flight at the peak, %.0f counted: %.0f %%; %d writes in %s", peak, counted,
				100*float64(peak)/counted, r.Counts.Applied, up.Calm)
			if float64(peak) > counted || float64(peak) < c.perHold*counted {
				t.Errorf("%d messages in flight at the peak, synth counts %.0f", peak, counted)
			}
		})
	}
}
