package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/aws/alarms"
	"github.com/lullhq/lull/internal/aws/cloudwatch"
	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/console"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
)

// awsMeter tells the console what the metrics of a deployed stack say. CloudWatch bills each metric
// that is asked for, and has them by the minute. So it is asked once a minute at most, for all who
// look.
type awsMeter struct {
	cfg     *config.Config
	metrics *cloudwatch.Metrics
	now     func() time.Time

	mu   sync.Mutex
	last console.Measured
	at   time.Time // when last was asked for
}

var _ console.Meter = (*awsMeter)(nil)

// How far back the metrics are read, and how often.
const (
	meterSpan = 3 * time.Hour
	meterStep = time.Minute
)

// metered are the metrics that are counted, and what each counts.
var metered = []struct {
	step  journal.Step
	field func(c *console.Counts) *int
}{
	{journal.Received, func(c *console.Counts) *int { return &c.Events }},
	{journal.Committed, func(c *console.Counts) *int { return &c.Written }},
	{journal.Kept, func(c *console.Counts) *int { return &c.Unchanged }},
	{journal.Superseded, func(c *console.Counts) *int { return &c.Superseded }},
	{journal.Stale, func(c *console.Counts) *int { return &c.Stale }},
	{journal.Duplicate, func(c *console.Counts) *int { return &c.Duplicates }},
	{journal.Parked, func(c *console.Counts) *int { return &c.Dead }},
	{journal.Fetched, func(c *console.Counts) *int { return &c.Fetched }},
	{journal.FetchFailed, func(c *console.Counts) *int { return &c.FetchFailed }},
	{journal.Enriched, func(c *console.Counts) *int { return &c.Enriched }},
	{journal.EnrichFailed, func(c *console.Counts) *int { return &c.EnrichFailed }},
}

// Measure reads the metrics, or answers what was read within the last minute.
func (m *awsMeter) Measure(ctx context.Context) (console.Measured, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UTC()
	if !m.at.IsZero() && now.Sub(m.at) < meterStep {
		return m.last, nil
	}
	end := now.Truncate(meterStep).Add(meterStep)
	begin := end.Add(-meterSpan)
	var queries []cloudwatch.Query
	names := slices.Sorted(maps.Keys(m.cfg.Sinks))
	for _, name := range names {
		s := alarms.Sink{Config: m.cfg, Name: name}
		for _, c := range metered {
			queries = append(queries, cloudwatch.Query{Metric: s.Own(metrics.Name(c.step)), Stat: "Sum"})
		}
		for _, stat := range []string{"p50", "p99"} {
			queries = append(queries, cloudwatch.Query{Metric: s.ByLane(metrics.Freshness, flight.Live), Stat: stat})
		}
	}
	series, err := m.metrics.Series(ctx, queries, begin, end, meterStep)
	if err != nil {
		return console.Measured{}, err
	}
	m.last, m.at = measured(series, begin, end), now
	return m.last, nil
}

// measured adds up the series of all sinks, minute by minute. Freshness is that of the sink that is
// slowest at the time.
func measured(series []cloudwatch.Series, begin, end time.Time) console.Measured {
	out := console.Measured{Since: begin, Step: meterStep, Points: []console.Point{}, Notes: []string{
		"These are the metrics of the last three hours, by the minute: CloudWatch has them a minute or two late. " +
			"Messages that came again are counted again. Freshness is that of the live lane.",
	}}
	each := len(metered) + 2
	for at := begin; at.Before(end); at = at.Add(meterStep) {
		p := console.Point{At: at}
		some := false
		for i, s := range series {
			v, ok := s[at]
			if !ok {
				continue
			}
			some = true
			fresh := time.Duration(v * float64(time.Millisecond))
			switch n := i % each; n {
			case len(metered):
				p.P50 = max(p.P50, fresh)
			case len(metered) + 1:
				p.P99 = max(p.P99, fresh)
			default:
				*metered[n].field(&p.Counts) += int(v)
				*metered[n].field(&out.Total) += int(v)
			}
		}
		if p.P50 > 0 {
			out.Total.P50, out.Total.P99 = p.P50, p.P99 // the latest
		}
		if some {
			out.Points = append(out.Points, p)
		}
	}
	return out
}
