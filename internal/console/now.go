package console

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
)

// Meter tells what became of events, so far and over time. It is safe for concurrent use.
type Meter interface {
	Measure(ctx context.Context) (Measured, error)
}

// Measured is what a Meter tells.
type Measured struct {
	Since   time.Time     `json:"since"` // when counting began
	Step    time.Duration `json:"step_ns"`
	Total   Counts        `json:"total"`
	Points  []Point       `json:"points"` // oldest first; a step in which nothing happened may be missing
	Dollars *Dollars      `json:"dollars,omitempty"`
	Notes   []string      `json:"notes,omitempty"` // what the numbers do not say
}

// Counts are events by what became of them.
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
	// Fetched are documents that were fetched from their source, FetchFailed fetches of which came
	// nothing to write.
	Fetched     int `json:"fetched,omitempty"`
	FetchFailed int `json:"fetch_failed,omitempty"`
	// Enriched are documents that a service added fields to; EnrichCalls are the requests to such
	// services, 0 where they are not counted, and EnrichFailed those without an answer of use.
	Enriched     int `json:"enriched,omitempty"`
	EnrichCalls  int `json:"enrich_calls,omitempty"`
	EnrichFailed int `json:"enrich_failed,omitempty"`

	P50 time.Duration `json:"p50_ns"` // freshness; 0 for no write
	P99 time.Duration `json:"p99_ns"`
}

// Point are the counts of one step.
type Point struct {
	At time.Time `json:"at"`
	Counts
}

// Dollars are what AWS bills for what has happened, by list prices.
type Dollars struct {
	Total  float64      `json:"total"`
	Items  []DollarItem `json:"items"`
	Counts string       `json:"counts"` // what is counted, and what is not
}

// DollarItem is one line of it.
type DollarItem struct {
	Service string  `json:"service"`
	What    string  `json:"what"`
	Count   float64 `json:"count"`
	Dollars float64 `json:"dollars"`
}

// nowRoutes are what the view of the present asks.
//
//	GET /console/now   what became of events, and what the settings promise
func (c *console) nowRoutes() routes {
	return routes{"GET /console/now": answered(reader, func(r *http.Request) (any, error) {
		m, err := c.Meter.Measure(r.Context())
		return struct {
			Measured
			Promise  time.Duration `json:"promise_ns,omitempty"` // freshness of a document that becomes quiet: the longest
			Promises []promise     `json:"promises,omitempty"`   // the same by collection, the shortest first
		}{m, c.Config.LongestFresh(), promises(c.Config)}, err
	})}
}

// promise is how fresh documents of some collections are that become quiet.
type promise struct {
	Fresh       time.Duration `json:"fresh_ns"`
	Collections []string      `json:"collections"` // empty where all are alike
	More        int           `json:"more,omitempty"`
}

// maxNamed is how many collections a promise names, and how many promises are told.
const maxNamed = 4

// promises groups the collections by their windows.
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
