// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/operate"
)

// Meter counts events by outcome, in total and over time. It is safe for concurrent use.
type Meter interface {
	Measure(ctx context.Context) (Measured, error)
}

// Measured is the result of a Meter.
type Measured struct {
	Since  time.Time     `json:"since"` // when the Meter began to count
	Step   time.Duration `json:"step_ns"`
	Total  Counts        `json:"total"`
	Points []Point       `json:"points"` // oldest first; a step without events may be missing
	// Ranges are the times that charts may cover, the shortest first. Points covers the first. Long
	// returns longer steps, for the others; if Long is nil, Points covers all.
	Ranges  []time.Duration `json:"ranges_ns,omitempty"`
	Long    func() History  `json:"-"`
	Parts   []Part          `json:"parts,omitempty"`
	Outages []Outage        `json:"outages,omitempty"`
	Oldest  time.Time       `json:"-"` // when the oldest message in a live queue was sent; zero if the queues are empty
	Dollars *Dollars        `json:"dollars,omitempty"`
	Notes   []string        `json:"notes,omitempty"` // notes about events that the numbers do not include
}

// Flow sums up the steps of the last span before now. P99 is the largest P99 of a step. P50 is the
// median of the steps' medians, weighted with the number of writes in each step.
func (m Measured) Flow(now time.Time, span time.Duration) operate.Flow {
	f := operate.Flow{Span: span, Oldest: m.Oldest}
	type median struct {
		p50 time.Duration
		n   int
	}
	var medians []median
	in, written := 0, 0
	for _, p := range m.Points {
		if !p.At.After(now.Add(-span)) {
			continue
		}
		in, written = in+p.Events, written+p.Written+p.Deleted
		if p.P50 > 0 {
			medians = append(medians, median{p.P50, max(p.Written+p.Deleted+p.Unchanged, 1)})
		}
		f.P99 = max(f.P99, p.P99)
	}
	f.In, f.Written = float64(in)/span.Seconds(), float64(written)/span.Seconds()
	slices.SortFunc(medians, func(a, b median) int { return cmp.Compare(a.p50, b.p50) })
	all := 0
	for _, s := range medians {
		all += s.n
	}
	below := 0
	for _, s := range medians {
		if f.P50, below = s.p50, below+s.n; 2*below >= all {
			break
		}
	}
	return f
}

// Counts are events by outcome.
type Counts struct {
	Events     int `json:"events"`
	Written    int `json:"written"`
	Deleted    int `json:"deleted"`
	Unchanged  int `json:"unchanged"`
	Superseded int `json:"superseded"`
	Stale      int `json:"stale"`
	Duplicates int `json:"duplicates"`
	Skipped    int `json:"skipped"`
	Dead       int `json:"dead"`
	// Fetched counts documents that were fetched from their source. FetchFailed counts fetches
	// whose answer could not be written.
	Fetched     int `json:"fetched,omitempty"`
	FetchFailed int `json:"fetch_failed,omitempty"`
	// Enriched counts documents to which a service added fields. EnrichCalls counts the requests to
	// such services, or is 0 if requests are not counted. EnrichFailed counts requests without a
	// usable answer.
	Enriched     int `json:"enriched,omitempty"`
	EnrichCalls  int `json:"enrich_calls,omitempty"`
	EnrichFailed int `json:"enrich_failed,omitempty"`

	P50 time.Duration `json:"p50_ns"` // the median freshness; 0 if nothing was written
	P99 time.Duration `json:"p99_ns"`
}

// History has points of longer steps.
type History struct {
	Step   time.Duration
	Points []Point // oldest first
}

// Part has the counts of one sink, collection or source.
type Part struct {
	Kind string `json:"kind"` // "sink", "collection" or "source"
	Name string `json:"name"` // empty for all names that are not counted one by one
	Counts
}

// over returns the measurements of the last span before now. It returns an error unless the span is
// one of the ranges.
func (m Measured) over(span time.Duration, now time.Time) (Measured, error) {
	at := slices.Index(m.Ranges, span)
	if at < 0 {
		return m, badf("range: use one of %s", strings.Trim(fmt.Sprint(m.Ranges), "[]"))
	}
	if at > 0 && m.Long != nil {
		long := m.Long()
		m.Step, m.Points = long.Step, long.Points
	}
	from := now.Add(-span - m.Step)
	m.Points = slices.DeleteFunc(slices.Clone(m.Points), func(p Point) bool { return p.At.Before(from) })
	return m, nil
}

// Point has the counts of one step.
type Point struct {
	At time.Time `json:"at"`
	Counts
}

// Outage is a time in which nothing was written to a sink.
type Outage struct {
	Sink   string    `json:"sink"`
	Paused bool      `json:"paused,omitempty"` // an operator paused the sink; otherwise the sink was unhealthy
	From   time.Time `json:"from"`
	To     time.Time `json:"to,omitzero"` // zero while the outage lasts
}

// Dollars is the bill of AWS for the events so far, by list prices.
type Dollars struct {
	Total  float64      `json:"total"`
	Items  []DollarItem `json:"items"`
	Counts string       `json:"counts"` // a text that says which costs are included
}

// DollarItem is one line of the bill.
type DollarItem struct {
	Service string  `json:"service"`
	What    string  `json:"what"`
	Count   float64 `json:"count"`
	Dollars float64 `json:"dollars"`
}

// nowRoutes are the requests of the view Now.
//
//	GET /console/now?range=   the events by outcome, and the promise of the settings; range is a
//	                          duration such as 1h, one of those that the answer names
func (c *console) nowRoutes() routes {
	return routes{"GET /console/now": answered(reader, func(r *http.Request) (any, error) {
		m, err := c.Meter.Measure(r.Context())
		if text := r.FormValue("range"); text != "" && err == nil {
			span, _ := time.ParseDuration(text) // 0 if it is not a duration
			m, err = m.over(span, c.Clock.Now())
		}
		return struct {
			Measured
			Promise  time.Duration `json:"promise_ns,omitempty"` // the longest promise
			Promises []promise     `json:"promises,omitempty"`   // the promises of the collections, the shortest first
		}{m, c.Config.LongestFresh(), promises(c.Config)}, err
	})}
}

// promise is how soon documents of some collections are written after they become quiet.
type promise struct {
	Fresh       time.Duration `json:"fresh_ns"`
	Collections []string      `json:"collections"` // empty if all collections have the same promise
	More        int           `json:"more,omitempty"`
}

// maxNamed is how many collections a promise names, and how many promises are shown.
const maxNamed = 4

// promises groups the collections that have the same promise.
func promises(c *config.Config) (all []promise) {
	by := map[time.Duration][]string{}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(c.Collections)),
		c.DefaultCollection)))) {
		fresh := c.Fresh(name)
		if name == "" {
			name = "all others"
		}
		by[fresh] = append(by[fresh], name)
	}
	for _, fresh := range slices.Sorted(maps.Keys(by)) {
		names := by[fresh]
		p := promise{Fresh: fresh, Collections: names[:min(len(names), maxNamed)], More: max(0, len(names)-maxNamed)}
		if len(by) == 1 {
			p.Collections, p.More = []string{}, 0
		}
		all = append(all, p)
	}
	if len(all) > maxNamed {
		all = append(all[:maxNamed-1], all[len(all)-1])
	}
	return all
}
