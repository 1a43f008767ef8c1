// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/price"
	"github.com/lullhq/lull/internal/simulation/sim"
	"github.com/lullhq/lull/sink"
)

var republished = flag.Int("republished", 2_000, "how many documents TestARepublish publishes twice")

// passes publishes documents twice in bursts, one pass after the other. In the second pass, the
// documents for which changed returns true have other bytes. The second pass begins after the first
// has settled.
func passes(docs, burst int, rate float64, twice bool, changed func(doc int) bool) sim.Upstream {
	var up sim.Upstream
	publish := func(from time.Duration, version int, content func(doc int) string) {
		for doc := range docs {
			at := from + time.Duration(float64(doc*burst)/rate*float64(time.Second))
			for n := range burst {
				body := fmt.Sprintf(`{"type":"doc.changed","subject":"cost-%09d","sequence":"%d","data":{"text":%q}}`, doc,
					version+n, content(doc)+strings.Repeat("x", 600))
				at := at + time.Duration(n)*2*time.Second/time.Duration(max(burst, 2))
				up.Arrivals = append(up.Arrivals, sim.Arrival{At: at, Message: queue.Outgoing{Body: body}})
				up.Calm = max(up.Calm, at)
			}
		}
	}
	publish(0, 1, func(int) string { return "before" })
	if twice {
		publish(up.Calm+2*time.Minute, 1+burst, func(doc int) string {
			if changed(doc) {
				return "after"
			}
			return "before"
		})
	}
	slices.SortStableFunc(up.Arrivals, func(a, b sim.Arrival) int { return int(a.At - b.At) })
	return up
}

// republish returns the usage of the second pass, as the difference of two runs.
func republish(t *testing.T, unchanged sink.Unchanged, docs, burst int, rate float64, changed func(doc int) bool) (
	u price.Usage, writes map[string]int64, items int64,
) {
	t.Helper()
	c := defaults()
	s := c.Sinks["search"]
	s.Unchanged = unchanged
	c.Sinks["search"] = s
	var m [2]measured
	for i, twice := range []bool{false, true} {
		var err error
		m[i], err = run(t.Context(), Native(c), passes(docs, burst, rate, twice, changed), FewestPollers, 0)
		if err != nil {
			t.Fatal(err)
		}
	}
	writes = map[string]int64{}
	for name, n := range m[1].counts.Writes {
		writes[name] = n - m[0].counts.Writes[name]
	}
	return m[1].usage.Plus(m[0].usage.Times(-1)), writes, m[1].counts.Items - m[0].counts.Items
}

// thousands formats a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// dollars returns the cost of requests and time.
func dollars(u price.Usage) (sum float64) {
	for _, i := range price.USEast1.Items(u) {
		sum += i.Dollars
	}
	return sum
}

// TestARepublishOfUnchangedDocumentsWritesWhatChanged: a republish writes only changed documents.
// An unchanged document costs one ADMIT for each batch and one KEEP for each burst.
func TestARepublishOfUnchangedDocumentsWritesWhatChanged(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a dozen simulations")
	}
	docs := *republished
	fiftieth := func(doc int) bool { return doc%50 == 0 }
	var b strings.Builder
	fmt.Fprintf(&b, "| a republish of %s documents at 100/s, 2 %% of them changed | write | keep |\n|---|---|---|\n",
		thousands(docs))
	rows := [4][2]string{}
	for i, unchanged := range []sink.Unchanged{sink.Write, sink.Keep} {
		u, writes, items := republish(t, unchanged, docs, 1, 100, fiftieth)
		index := int64(0)
		for name, n := range writes {
			if name != shard.ADMIT.String() && !strings.HasPrefix(name, "OTHER") {
				index += n
			}
		}
		rows[0][i], rows[1][i] = thousands(int(items)), thousands(int(writes[shard.ADMIT.String()]))
		rows[2][i], rows[3][i] = thousands(int(index)), fmt.Sprintf("%.2f", dollars(u)/float64(docs)*1e6)
		want := int64(docs)
		if unchanged == sink.Keep {
			want /= 50
			kept := int64(docs) - want
			if got := writes[shard.KEEP.String()]; got != kept {
				t.Errorf("%d KEEPs, want %d: A + 1 row writes for each that did not change", got, kept)
			}
		}
		if items != want {
			t.Errorf("%s: the sink got %d documents, want %d", unchanged, items, want)
		}
	}
	for i, what := range []string{
		"documents that the sink gets", "row writes of receive", "row writes of index",
		"$ a million documents, requests and time",
	} {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", what, rows[i][0], rows[i][1])
	}
	fmt.Fprintf(&b, "\n| share of bursts that change nothing | a month at GOV.UK's peak, requests and time, $ |\n|---|---|\n")
	const sampled = 1_500
	idle, err := idling(t.Context(), Native(defaults()))
	if err != nil {
		t.Fatal(err)
	}
	last := 0.0
	for _, of := range []struct {
		name string
		set  sink.Unchanged
		per  int // how many of ten bursts change the document
	}{
		{"any, with `unchanged: write`", sink.Write, 5},
		{"none, with `keep`", sink.Keep, 10},
		{"half, with `keep`", sink.Keep, 5},
		{"nine in ten, with `keep`", sink.Keep, 1},
	} {
		u, _, _ := republish(t, of.set, sampled, 3, peak().Rate, func(doc int) bool { return doc%10 < of.per })
		prunes := float64(month / config.Default().Lifecycle.PruneEvery)
		sum := dollars(idle.usage.Times(prunes)) + dollars(u)/(3*sampled)*peak().events()
		fmt.Fprintf(&b, "| %s | %.2f |\n", of.name, sum)
		if of.set == sink.Keep && of.per < 10 && sum > last {
			t.Errorf("%s: $%.2f, with fewer %.2f", of.name, sum, last)
		}
		last = sum
	}
	t.Log(b.String())
	if *update {
		tree.Generated(t, page, "unchanged", b.String(), true)
	}
}
