// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/proof/tree"
)

const (
	slowEvents    = 50 // events a second
	slowDocuments = 1000
	slowLearning  = 2 * time.Minute
)

// slow is a sink that accepts fewer documents a second than it could get, which is about 32.
type slow struct {
	name  string
	takes int
	how   Throttling
	// least is the smallest share of its capacity that the sink must get; 0 means 0.85.
	least float64
	// pollers is the number of pollers of the live queue; 0 means 2.
	pollers int
}

var slowSinks = []slow{
	{name: "30 a second", takes: 30, how: ThrottleBucket},
	{name: "20 a second", takes: 20, how: ThrottleBucket},
	{name: "13 a second", takes: 13, how: ThrottleBucket},
	{name: "7 a second", takes: 7, how: ThrottleBucket},
	{name: "20 a second, it queues", takes: 20, how: ThrottleQueue},
	{name: "20 a second, it answers late", takes: 20, how: ThrottleLate},
	// A late answer never lowers the speed below 16 a second, so only the circuit breaker slows lull.
	{name: "7 a second, it answers late", takes: 7, how: ThrottleLate, least: 0.5},
	{name: "20 a second, it refuses at random", takes: 20, how: ThrottleRandom},
	{name: "20 a second, up and down by half", takes: 20, how: ThrottleDrift},
}

// length returns how long to run. A sink whose rate drifts runs for a whole period of the drift.
func (s slow) length(d time.Duration) time.Duration {
	if s.how == ThrottleDrift {
		return slowLearning + 10*time.Minute
	}
	return d
}

func (s slow) run(t *testing.T, lasting time.Duration) Result { return s.seeded(t, 1, lasting) }

func (s slow) seeded(t *testing.T, seed uint64, lasting time.Duration) Result {
	t.Helper()
	r := begin(t, Options{
		Config: settings(t, true, func(*config.Config) {}), Seed: seed, Faults: NoFaults,
		Pollers: cmp.Or(s.pollers, 2), Timeline: true,
		Upstream: Steady(seed, slowEvents, slowDocuments, lasting), Strain: Strain{Rate: s.takes, Throttling: s.how},
	}).Run()
	report(t, r, NoFaults)
	return r
}

// goodput returns the share of the sink's capacity that was used for documents that lull then
// committed. goodput also returns the share of requested documents that the sink answered with 429.
func (s slow) goodput(stretch []Second) (of, refused float64) {
	wrote, denied := float64(total(stretch, written)), float64(total(stretch, throttled))
	useful := total(stretch, func(s Second) int { return len(s.Ages) })
	return float64(useful) / float64(s.takes*len(stretch)), denied / (wrote + denied)
}

// TestASlowSinkGetsWhatItTakes: finding S6 of a review. Without a budget, sinks that accept 30, 20
// and 10 documents a second got only 16.2, 11.3 and 2.8. A sink that answered late wrote documents
// again and again that lull never committed.
func TestASlowSinkGetsWhatItTakes(t *testing.T) {
	t.Parallel()
	lasting := 8 * time.Minute
	if testing.Short() || raceEnabled {
		lasting = 4 * time.Minute
	}
	for _, s := range slowSinks {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && (s.takes != 20 || s.how > ThrottleLate) {
				t.Skip("a minute of simulation for all of them")
			}
			length := s.length(lasting)
			r := s.run(t, length)
			all := r.between(slowLearning, length)
			of, refused := s.goodput(all)
			if least := cmp.Or(s.least, 0.85); of < least {
				t.Errorf("committed %.2f of what it takes, want at least %.2f", of, least)
			}
			// With a sink that queues and a window of 3 s, twelve seeds had shares of 0.04 to 0.16,
			// 0.10 on average. If superseded messages stay in their flights, the shares are 0.07 to
			// 0.16, 0.11 on average.
			most := 0.1
			if s.how == ThrottleQueue {
				most = 0.17
			}
			if refused > most {
				t.Errorf("answered %.3f with 429, want at most %.2f", refused, most)
			}
			// Each wait of a message is at least an eighth of its age. So twice the time adds at most six
			// receives, which is 8 ln 2.
			receives := 10
			if lasting == 8*time.Minute {
				receives = 16
			}
			if r.Extremes != (Extremes{Receives: r.Extremes.Receives}) || r.Extremes.Receives > receives {
				t.Errorf("%+v, want neither refusals nor dead letters, and %d receives at most", r.Extremes, receives)
			}
			t.Logf("committed %.2f of what it takes, %.3f answered with 429; versions written after %s, %s at p99, "+
				"$%.2f a million", of, refused, aged(all, 0.5), aged(all, 0.99), r.Summary(NoFaults).Bill.PerMillion)
		})
	}
}

// TestASlowSinkStarvesNoDocument: no document waits while others are written again and again.
func TestASlowSinkStarvesNoDocument(t *testing.T) {
	t.Parallel()
	if testing.Short() || raceEnabled {
		t.Skip("half a million decisions")
	}
	const takes, lasting = 10, 8 * time.Minute
	w := begin(t, Options{
		Config: settings(t, true, func(*config.Config) {}), Seed: 1, Faults: NoFaults, Pollers: 2,
		Upstream: Steady(1, slowEvents, slowDocuments, lasting), Strain: Strain{Rate: takes},
	})
	var written []int
	w.after(lasting, func() {
		for _, doc := range w.oracle.sorted() {
			written = append(written, w.oracle.docs[doc].writes)
		}
	})
	report(t, w.Run(), NoFaults)
	slices.Sort(written)
	mean := float64(takes) * lasting.Seconds() / slowDocuments
	// A document changes every 27 seconds and is written every 100 seconds.
	tenth, most := written[len(written)/10], written[len(written)-1]
	if len(written) != slowDocuments || written[0] == 0 || float64(tenth) < mean/2 || float64(most) > 2*mean {
		t.Errorf("%d documents, written %d times at least, %d at the tenth, %d at most; want %d, and around %.1f",
			len(written), written[0], tenth, most, slowDocuments, mean)
	}
	t.Logf("writes of a document: %d, %d at the tenth, %d, %d at most", written[0], written[len(written)/10],
		written[len(written)/2], written[len(written)-1])
}

// TestWriteSlow writes the figures of docs/lifecycles.md.
func TestWriteSlow(t *testing.T) {
	if !*update {
		t.Skip("make lifecycles runs it with -update")
	}
	var table strings.Builder
	table.WriteString("| the sink takes | committed, as a share of that | answered with 429 | " +
		"written after, median | p99 | " +
		"$ a million events |\n|---|---:|---:|---:|---:|---:|\n")
	for _, s := range slowSinks {
		length := s.length(8 * time.Minute)
		r := s.run(t, length)
		if s.takes == 13 {
			picture := filepath.Join("..", "..", "..", "docs", "img", "slow.svg")
			svg := Chart(r.Timeline, s.takes, 0, length+6*time.Minute)
			if err := os.WriteFile(picture, []byte(svg), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		all := r.between(slowLearning, length)
		of, refused := s.goodput(all)
		fmt.Fprintf(&table, "| %s | %.2f | %.1f %% | %s | %s | %.2f |\n", s.name, of, 100*refused,
			aged(all, 0.5).Round(time.Second), aged(all, 0.99).Round(time.Second), r.Summary(NoFaults).Bill.PerMillion)
	}
	tree.Generated(t, "docs/lifecycles.md", "slow", table.String(), true)
}
