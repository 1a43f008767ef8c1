// SPDX-License-Identifier: Apache-2.0

package command

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
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
)

// awsMeter reads the metrics of a deployed stack for the console. CloudWatch bills each metric that
// is read, and has one value a minute. So awsMeter reads at most once a minute, for all viewers
// together.
type awsMeter struct {
	cfg     *config.Config
	metrics *cloudwatch.Metrics
	now     func() time.Time

	mu   sync.Mutex
	last console.Measured
	at   time.Time // when last was read
}

var _ console.Meter = (*awsMeter)(nil)

// How far back the metrics are read, and how often.
const (
	meterSpan = 3 * time.Hour
	meterStep = time.Minute
)

// meterRanges are the times that charts may cover.
var meterRanges = []time.Duration{time.Hour, meterSpan}

// countedAt returns the counter for the metric of each step.
func countedAt(c *console.Counts) map[journal.Step]*int {
	return map[journal.Step]*int{
		journal.Received: &c.Events, journal.Committed: &c.Written, journal.Kept: &c.Unchanged,
		journal.Superseded: &c.Superseded, journal.Stale: &c.Stale, journal.Duplicate: &c.Duplicates,
		journal.Parked: &c.Dead, journal.Fetched: &c.Fetched, journal.FetchFailed: &c.FetchFailed,
		journal.Enriched: &c.Enriched, journal.EnrichFailed: &c.EnrichFailed,
	}
}

// flowSpan is how far back the rates and the freshness of a deployed stack reach. CloudWatch is
// some minutes late.
const flowSpan = 5 * time.Minute

// flow sums up the latest minutes.
func (m *awsMeter) flow(ctx context.Context) (operate.Flow, error) {
	measured, err := m.Measure(ctx)
	return measured.Flow(m.now(), flowSpan), err
}

// metered lists the steps whose metrics are counted, in the order of the request.
var metered = slices.Sorted(maps.Keys(countedAt(&console.Counts{})))

// Measure reads the metrics, or returns those that it read within the last minute.
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
	all := slices.Sorted(maps.Keys(m.cfg.Sinks))
	for _, name := range all {
		s := alarms.Sink{Config: m.cfg, Name: name}
		for _, step := range metered {
			queries = append(queries, cloudwatch.Query{Metric: s.Own(metrics.Name(step)), Stat: "Sum"})
		}
		for _, stat := range []string{"p50", "p99"} {
			queries = append(queries, cloudwatch.Query{Metric: s.ByLane(metrics.Freshness, flight.Live), Stat: stat})
		}
		queue := alarms.OnQueue("ApproximateAgeOfOldestMessage", names.Of(m.cfg).Queue(name, flight.Live))
		queries = append(queries, cloudwatch.Query{Metric: queue, Stat: "Maximum"},
			cloudwatch.Query{Metric: s.Own(metrics.Name(journal.CircuitOpened)), Stat: "Sum"})
	}
	series, err := m.metrics.Series(ctx, queries, begin, end, meterStep)
	if err != nil {
		return console.Measured{}, err
	}
	m.last, m.at = measured(series, begin, end), now
	m.last.Parts = partsOf(series, all)
	m.last.Outages = outages(series, all, begin, end)
	return m.last, nil
}

// measured adds up the series of all sinks, minute by minute. The freshness of a minute is the
// freshness of the slowest sink.
func measured(series []cloudwatch.Series, begin, end time.Time) console.Measured {
	out := console.Measured{Since: begin, Step: meterStep, Ranges: meterRanges, Points: []console.Point{}}
	out.Notes = []string{
		"These are the metrics of the last three hours, by the minute: CloudWatch has them a minute or two late. " +
			"Messages that were delivered again are counted again. Freshness is measured in the live lane.",
	}
	each, total := len(metered)+4, countedAt(&out.Total)
	for at := begin; at.Before(end); at = at.Add(meterStep) {
		p := console.Point{At: at}
		counts, some := countedAt(&p.Counts), false
		age, aged := time.Duration(0), false
		for i, s := range series {
			v, ok := s[at]
			if !ok {
				continue
			}
			fresh := time.Duration(v * float64(time.Millisecond))
			n := i % each
			some = some || n < len(metered)+2
			switch n {
			case len(metered) + 3: // see outages
			case len(metered) + 2:
				aged, age = true, max(age, time.Duration(v*float64(time.Second)))
			case len(metered):
				p.P50 = max(p.P50, fresh)
			case len(metered) + 1:
				p.P99 = max(p.P99, fresh)
			default:
				*counts[metered[n]] += int(v)
				*total[metered[n]] += int(v)
			}
		}
		if p.P50 > 0 {
			out.Total.P50, out.Total.P99 = p.P50, p.P99 // the latest
		}
		if aged {
			out.Oldest = time.Time{} // the queue was empty
		}
		if age > 0 {
			out.Oldest = at.Add(-age)
		}
		if some {
			out.Points = append(out.Points, p)
		}
	}
	return out
}

// partsOf adds up the series of each sink.
func partsOf(series []cloudwatch.Series, sinks []string) (all []console.Part) {
	each := len(metered) + 4
	for i, name := range sinks {
		p := console.Part{Kind: "sink", Name: name}
		counts := countedAt(&p.Counts)
		for n, step := range metered {
			for _, v := range series[i*each+n] {
				*counts[step] += int(v)
			}
		}
		all = append(all, p)
	}
	return all
}

// outageGap is the longest time between two openings of a circuit breaker that count as one outage.
// It is retry.backoffMax, plus the time in which the circuit breaker notices the failure.
const outageGap = 3 * time.Minute

// outages returns the minutes in which the circuit breaker of a sink opened. The metrics do not
// show when an outage ends, so it ends here with the minute of its last opening.
func outages(series []cloudwatch.Series, sinks []string, begin, end time.Time) (all []console.Outage) {
	each := len(metered) + 4
	for i, name := range sinks {
		first := len(all)
		opened := series[i*each+each-1]
		for at := begin; at.Before(end); at = at.Add(meterStep) {
			switch n := len(all); {
			case opened[at] == 0:
			case n > first && at.Sub(all[n-1].To) < outageGap:
				all[n-1].To = at.Add(meterStep)
			default:
				all = append(all, console.Outage{Sink: name, From: at, To: at.Add(meterStep)})
			}
		}
	}
	return all
}
