// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/cloudwatch"
	"github.com/lullhq/lull/internal/console"
)

func TestTheMetricsOfAllSinksAreAddedUpMinuteByMinute(t *testing.T) {
	t.Parallel()
	begin := time.Unix(6000, 0).UTC()
	at := func(minute int, v float64) cloudwatch.Series {
		return cloudwatch.Series{begin.Add(time.Duration(minute) * time.Minute): v}
	}
	none := cloudwatch.Series{}
	// For each sink: committed, duplicate, failures of enrichers, enriched, failed fetches, fetched,
	// parked, received. Then stale, superseded, unchanged, p50, p99, the age of the oldest message in
	// seconds, and openings of the circuit breaker.
	series := []cloudwatch.Series{
		at(1, 4), none, at(1, 6), at(1, 8), at(1, 13), at(1, 12), at(3, 1), at(1, 10), at(1, 2), at(1, 3), at(1, 7),
		at(1, 5000), at(1, 9000), at(1, 20), at(1, 1),
		none, at(1, 1), at(1, 1), none, none, none, none, at(1, 1), none, none, none, at(1, 6000), at(1, 7000),
		at(1, 30),
		{begin: 2, begin.Add(2 * time.Minute): 1, begin.Add(4 * time.Minute): 1},
	}
	m := measured(series, begin, begin.Add(5*time.Minute))
	if len(m.Points) != 2 || !m.Points[0].At.Equal(begin.Add(time.Minute)) {
		t.Fatalf("points %+v", m.Points)
	}
	if p := m.Points[0]; p.Events != 11 || p.Written != 4 || p.Unchanged != 7 || p.Superseded != 3 ||
		p.Stale != 2 || p.Duplicates != 1 ||
		p.Fetched != 12 || p.FetchFailed != 13 || p.Enriched != 8 || p.EnrichFailed != 7 || p.P50 != 6*time.Second ||
		p.P99 != 9*time.Second {
		t.Errorf("the first point: %+v", p)
	}
	minute := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Minute) }
	want := []console.Outage{{Sink: "a", From: minute(1), To: minute(2)}, {Sink: "b", From: begin, To: minute(5)}}
	if got := outages(series, []string{"a", "b"}, begin, minute(5)); !slices.Equal(got, want) {
		t.Errorf("outages %+v, want %+v", got, want)
	}
	if p := partsOf(series, []string{"a", "b"}); len(p) != 2 || p[0].Kind != "sink" || p[0].Name != "a" ||
		p[0].Written != 4 || p[0].Events != 10 || p[0].Dead != 1 || p[1].Name != "b" || p[1].Events != 1 {
		t.Errorf("the sinks have %+v", p)
	}
	if want := begin.Add(30 * time.Second); !m.Oldest.Equal(want) {
		t.Errorf("the oldest message was sent at %s, want %s", m.Oldest, want)
	}
	if m.Points[1].Dead != 1 || m.Total.Events != 11 || m.Total.Dead != 1 || m.Total.P99 != 9*time.Second ||
		len(m.Notes) == 0 || m.Dollars != nil {
		t.Errorf("total %+v, %+v", m.Total, m.Points[1])
	}
}
