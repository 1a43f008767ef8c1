// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// maxValues is how many values of one metric a line of the embedded metric format may have.
const maxValues = 100

// Namespace is the CloudWatch namespace of the metrics.
const Namespace = "lull"

// The dimensions of the metrics.
const (
	DimensionStack = "Stack"
	DimensionSink  = "Sink"
	DimensionLane  = "Lane"
)

// Freshness is the metric for the time from the sending of an event to its commit, in milliseconds.
// The dimensions of Freshness are Stack, Sink and Lane.
const Freshness = "Freshness"

// directive says which fields of a line are metrics. CloudWatch allows a hundred metrics in a
// directive, and a function has about fifty.
type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []metric
}

type metric struct{ Name, Unit string }

// Flush writes the metrics and resets the counts. request is the id of the invocation.
func (c *Counters) Flush(now time.Time, request string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range slices.SortedFunc(maps.Values(c.tallies), func(a, b *tally) int {
		return cmp.Or(cmp.Compare(a.sink, b.sink), cmp.Compare(a.lane, b.lane))
	}) {
		for len(t.counts)+len(t.fresh) > 0 {
			n := min(len(t.fresh), maxValues)
			// ignore an error, because it cannot be reported
			_, _ = c.out.Write(c.line(now, request, t, t.fresh[:n]))
			t.counts, t.fresh = nil, t.fresh[n:]
		}
	}
	clear(c.tallies)
}

// line returns one line in the embedded metric format.
func (c *Counters) line(now time.Time, request string, t *tally, fresh []int64) []byte {
	fields := map[string]any{DimensionStack: c.base.Stack, DimensionSink: t.sink, "Function": c.base.Function}
	if request != "" {
		fields["RequestId"] = request
	}
	lane := []string{DimensionStack, DimensionSink}
	if t.lane != "" {
		fields[DimensionLane] = t.lane
		lane = append(lane, DimensionLane)
	}
	var directives []directive
	if counts := t.counts; len(counts) > 0 {
		d := directive{Namespace: Namespace, Dimensions: [][]string{{DimensionStack, DimensionSink}}}
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			fields[name] = counts[name]
			if IsMetric(name) {
				d.Metrics = append(d.Metrics, metric{name, "Count"})
			}
		}
		if len(d.Metrics) > 0 {
			directives = append(directives, d)
		}
	}
	byLane := directive{Namespace: Namespace, Dimensions: [][]string{lane}}
	if len(fresh) > 0 {
		byLane.Metrics = append(byLane.Metrics, metric{Freshness, "Milliseconds"})
		fields[Freshness] = fresh
	}
	if t.aged {
		byLane.Metrics = append(byLane.Metrics, metric{OldestAge, "Seconds"})
		fields[OldestAge], t.aged = t.oldest, false // only once, even if freshness needs several lines
	}
	if len(byLane.Metrics) > 0 {
		directives = append(directives, byLane)
	}
	if len(directives) == 0 {
		directives = []directive{}
	}
	fields["_aws"] = map[string]any{"Timestamp": now.UnixMilli(), "CloudWatchMetrics": directives}
	b, err := json.Marshal(fields)
	if err != nil {
		return nil // cannot happen: the line contains only numbers and texts
	}
	return append(b, '\n')
}
