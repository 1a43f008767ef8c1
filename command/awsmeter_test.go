package command

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/cloudwatch"
)

func TestTheMetricsOfAllSinksAreAddedUpMinuteByMinute(t *testing.T) {
	t.Parallel()
	begin := time.Unix(6000, 0).UTC()
	at := func(minute int, v float64) cloudwatch.Series {
		return cloudwatch.Series{begin.Add(time.Duration(minute) * time.Minute): v}
	}
	none := cloudwatch.Series{}
	// of each sink: committed, duplicate, failures of enrichers, enriched, fetches in vain, fetched, parked,
	// received, stale, superseded, unchanged, p50 and p99
	series := []cloudwatch.Series{
		at(1, 4), none, at(1, 6), at(1, 8), at(1, 13), at(1, 12), at(3, 1), at(1, 10), at(1, 2), at(1, 3), at(1, 7),
		at(1, 5000), at(1, 9000),
		none, at(1, 1), at(1, 1), none, none, none, none, at(1, 1), none, none, none, at(1, 6000), at(1, 7000),
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
	if m.Points[1].Dead != 1 || m.Total.Events != 11 || m.Total.Dead != 1 || m.Total.P99 != 9*time.Second ||
		len(m.Notes) == 0 || m.Dollars != nil {
		t.Errorf("total %+v, %+v", m.Total, m.Points[1])
	}
}
