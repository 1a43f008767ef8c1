// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/simulation/plot"
)

// points is the approximate number of points on a line of a chart. More points would not be
// visible.
const points = 180

// Point summarizes a period of a timeline for a chart.
type Point struct {
	From               time.Duration
	Written, Throttled float64 // documents in a second
	Requests           float64 // requests to the sink in a second
	Most               int     // the most requests in one second
	Waiting            int     // messages in the queues at the beginning of the period
	Committed          int     // committed versions; P50, P99 and Oldest are ages of versions, from sent to committed
	P50, P99, Oldest   time.Duration
}

// Points divides a timeline into n periods, or into seconds if the timeline has fewer than n.
func Points(timeline []Second, n int) (all []Point) {
	step := max((len(timeline)+n-1)/n, 1)
	for i := 0; i < len(timeline); i += step {
		stretch := timeline[i:min(i+step, len(timeline))]
		mean := func(f func(Second) int) float64 { return float64(total(stretch, f)) / float64(len(stretch)) }
		all = append(all, Point{
			From: time.Duration(i) * time.Second, Written: mean(written), Throttled: mean(throttled),
			Requests: mean(requests), Most: peak(stretch, requests), Waiting: stretch[0].Waiting,
			Committed: total(stretch, func(s Second) int { return len(s.Ages) }),
			P50:       aged(stretch, 0.5), P99: aged(stretch, 0.99), Oldest: aged(stretch, 1),
		})
	}
	return all
}

// Chart draws a timeline between two moments as SVG. The chart shows the requests to the sinks, the
// accepted documents, the freshness, and the waiting messages. If the time is long, several seconds
// share a point.
func Chart(timeline []Second, rate int, from, to time.Duration) string {
	first := min(max(int(from/time.Second), 0), len(timeline))
	last := min(max(int(to/time.Second), first), len(timeline))
	shown := Points(timeline[first:last], points)
	line := func(name string, f func(p Point) float64) plot.Series {
		s := plot.Series{Name: name}
		for _, p := range shown {
			s.X = append(s.X, (time.Duration(first)*time.Second + p.From).Minutes())
			s.Y = append(s.Y, f(p))
		}
		return s
	}
	documents := []plot.Series{
		line("written", func(p Point) float64 { return p.Written }),
		line("answered 429", func(p Point) float64 { return p.Throttled }),
	}
	if rate > 0 {
		documents = append(documents, line(fmt.Sprintf("the rate of the sink: %d", rate),
			func(Point) float64 { return float64(rate) }))
	}
	const minutes = "minutes"
	return plot.Stack("A sink under strain",
		plot.Plot{Title: "Documents", XName: minutes, YName: "a second", Series: documents},
		plot.Plot{Title: "Requests to the sink", XName: minutes, YName: "a second", Series: []plot.Series{
			line("mean", func(p Point) float64 { return p.Requests }),
			line("most in one second", func(p Point) float64 { return float64(p.Most) }),
		}},
		plot.Plot{Title: "Age of committed documents", XName: minutes, YName: "seconds", Series: []plot.Series{
			line("median", func(p Point) float64 { return p.P50.Seconds() }),
			line("oldest", func(p Point) float64 { return p.Oldest.Seconds() }),
		}},
		plot.Plot{
			Title: "Messages in the queues, including held ones", XName: minutes, YName: "messages",
			Series: []plot.Series{
				line("waiting", func(p Point) float64 { return float64(p.Waiting) }),
			},
		},
	)
}

func requests(s Second) int  { return s.Requests }
func written(s Second) int   { return s.Written }
func throttled(s Second) int { return s.Throttled }

func total(stretch []Second, f func(Second) int) (n int) {
	for _, s := range stretch {
		n += f(s)
	}
	return n
}

func peak(stretch []Second, f func(Second) int) (n int) {
	for _, s := range stretch {
		n = max(n, f(s))
	}
	return n
}

// aged returns a quantile of the ages of the versions committed in a period, or 0 if there are
// none.
func aged(stretch []Second, q float64) time.Duration {
	var all []time.Duration
	for _, s := range stretch {
		all = append(all, s.Ages...)
	}
	return at(all, q)
}
