package sim

import (
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/proof/plot"
)

// points is about how many points a line of a chart has: more cannot be seen.
const points = 180

// Chart draws the stretch of a timeline from one moment to another as SVG: what the sinks were
// asked for and took, how fresh it was, and what waited. Where the stretch is long several seconds
// share a point.
func Chart(timeline []Second, rate int, from, to time.Duration) string {
	first := min(max(int(from/time.Second), 0), len(timeline))
	last := min(max(int(to/time.Second), first), len(timeline))
	step := max((last-first+points-1)/points, 1)
	line := func(name string, f func(stretch []Second) float64) plot.Series {
		s := plot.Series{Name: name}
		for i := first; i < last; i += step {
			s.X = append(s.X, (time.Duration(i) * time.Second).Minutes())
			s.Y = append(s.Y, f(timeline[i:min(i+step, last)]))
		}
		return s
	}
	mean := func(f func(Second) int) func([]Second) float64 {
		return func(stretch []Second) float64 { return float64(total(stretch, f)) / float64(len(stretch)) }
	}
	most := func(f func(Second) int) func([]Second) float64 {
		return func(stretch []Second) float64 { return float64(peak(stretch, f)) }
	}
	documents := []plot.Series{
		line("written", mean(written)),
		line("answered 429", mean(throttled)),
	}
	if rate > 0 {
		documents = append(documents, line(fmt.Sprintf("what the sink takes: %d", rate),
			func([]Second) float64 { return float64(rate) }))
	}
	const minutes = "minutes"
	return plot.Stack("A sink under strain",
		plot.Plot{Title: "Documents", XName: minutes, YName: "a second", Series: documents},
		plot.Plot{Title: "Requests to the sink", XName: minutes, YName: "a second", Series: []plot.Series{
			line("mean", mean(requests)),
			line("most in one second", most(requests)),
		}},
		plot.Plot{Title: "Age of what was committed", XName: minutes, YName: "seconds", Series: []plot.Series{
			line("median", func(stretch []Second) float64 { return aged(stretch, 0.5).Seconds() }),
			line("oldest", func(stretch []Second) float64 { return aged(stretch, 1).Seconds() }),
		}},
		plot.Plot{
			Title: "Messages in the queues, held ones too", XName: minutes, YName: "messages",
			Series: []plot.Series{
				line("waiting", func(stretch []Second) float64 { return float64(stretch[0].Waiting) }),
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

// aged is the quantile of the ages of what was committed in a stretch, 0 where nothing was.
func aged(stretch []Second, q float64) time.Duration {
	var all []time.Duration
	for _, s := range stretch {
		all = append(all, s.Ages...)
	}
	return at(all, q)
}
