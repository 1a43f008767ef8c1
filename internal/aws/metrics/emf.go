package metrics

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Limits of the embedded metric format.
const (
	maxValues  = 100 // of one metric in one line
	maxMetrics = 100 // in one directive
)

// Namespace is where the metrics are.
const Namespace = "lull"

// Dimensions of the metrics.
const (
	DimensionStack = "Stack"
	DimensionSink  = "Sink"
	DimensionLane  = "Lane"
)

// Freshness is the metric of the time from sent to committed, in milliseconds, by Stack, Sink and
// Lane.
const Freshness = "Freshness"

type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []metric
}

type metric struct{ Name, Unit string }

// Flush writes the metrics and starts anew. request is the invocation's id.
func (j *Journal) Flush(now time.Time, request string) {
	j.mu.Lock()
	lines := maps.Clone(j.lines)
	clear(j.lines)
	j.mu.Unlock()
	for _, step := range slices.Sorted(maps.Keys(lines)) {
		if left := lines[step] - maxLines; left > 0 {
			j.log.Warn("lines left out", "step", step, "count", left)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	places := map[place]bool{}
	for p := range j.counts {
		places[p] = true
	}
	for p := range j.fresh {
		places[p] = true
	}
	for _, p := range slices.SortedFunc(maps.Keys(places), func(a, b place) int {
		if a.sink+"/"+a.lane < b.sink+"/"+b.lane {
			return -1
		}
		return 1
	}) {
		counts, fresh := j.counts[p], j.fresh[p]
		for first := true; first || len(fresh) > 0; first = false {
			n := min(len(fresh), maxValues)
			if line := j.line(now, request, p, counts, fresh[:n]); line != nil {
				_, _ = j.out.Write(line) // there is nobody to tell
			}
			counts, fresh = nil, fresh[n:]
		}
	}
	clear(j.counts)
	clear(j.fresh)
}

// line is one line of the format, nil where there is nothing to say.
func (j *Journal) line(now time.Time, request string, p place, counts map[string]int, fresh []int64) []byte {
	fields := map[string]any{DimensionStack: j.base.Stack, DimensionSink: p.sink, "Function": j.base.Function}
	if request != "" {
		fields["RequestId"] = request
	}
	var directives []directive
	var d directive
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if len(d.Metrics) == maxMetrics {
			directives, d.Metrics = append(directives, d), nil
		}
		d.Namespace, d.Dimensions = Namespace, [][]string{{DimensionStack, DimensionSink}}
		d.Metrics = append(d.Metrics, metric{name, "Count"})
		fields[name] = counts[name]
	}
	if len(d.Metrics) > 0 {
		directives = append(directives, d)
	}
	if p.lane != "" {
		fields[DimensionLane] = p.lane
	}
	if len(fresh) > 0 {
		dimensions := []string{DimensionStack, DimensionSink}
		if p.lane != "" {
			dimensions = append(dimensions, DimensionLane)
		}
		directives = append(directives, directive{
			Namespace,
			[][]string{dimensions},
			[]metric{{Freshness, "Milliseconds"}},
		})
		fields[Freshness] = fresh
	}
	if len(directives) == 0 {
		return nil
	}
	fields["_aws"] = map[string]any{"Timestamp": now.UnixMilli(), "CloudWatchMetrics": directives}
	b, err := json.Marshal(fields)
	if err != nil {
		return nil // numbers and texts: cannot happen
	}
	return append(b, '\n')
}
