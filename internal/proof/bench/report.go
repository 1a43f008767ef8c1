// SPDX-License-Identifier: Apache-2.0

package bench

import (
	_ "embed" // the page's template
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/simulation/plot"
	"github.com/lullhq/lull/internal/simulation/price"
)

// The page is a template. The template contains the text for the reader, and asks for the figures
// by name.
//
//go:embed numbers.md.tmpl
var text string

var page = template.Must(template.New("").Funcs(template.FuncMap{
	"contenders": Contenders,
	"strongest":  Strongest,
	"trials":     Trials,
	"base":       base,
	"grid":       Grid,
	"maximum":    func() int { c := config.Default(); return c.Queues.Live.MaxConcurrency },
	"variants":   Variants,
	"axes":       Axes,
	"prices":     func() price.List { return price.USEast1 },
	"assumed":    assumed,
	"bill":       monthlyBill,
	"first":      func(list string) string { return strings.SplitN(list, ";", 2)[0] },
	"per":        per,
	"dollars":    dollars,
	"seconds":    func(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) },
	"micros":     func(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d)/1e3) },
	"thousands":  plot.Thousands,
}).Parse(text))

// monthlyBill returns the bill for a month. The scenario of the month runs only a part of a month.
func monthlyBill(r Result) []price.Line {
	lines := price.USEast1.Bill(r.Usage)
	for i := range lines {
		lines[i].Dollars *= eventsAMonth * 1e6 / float64(r.Events)
	}
	return lines
}

// Write writes the page docs/numbers.md.
func (n *Numbers) Write(w io.Writer) error { return page.Execute(w, n) }

// dollars formats an amount with about three figures.
func dollars(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// Trial returns the result of a contender in a trial.
func (n *Numbers) Trial(t Trial, contender string) (Result, error) {
	return n.Result(t.key(), contender)
}

// Tried is the result of a contender in all trials together.
type Tried struct {
	End
	Backwards int
	Failed    int // how many trials ended with a wrong document
}

// Tried adds up the results of a contender in all trials.
func (n *Numbers) Tried(contender string) (sum Tried, err error) {
	for _, t := range Trials() {
		r, err := n.Trial(t, contender)
		if err != nil {
			return sum, err
		}
		sum.Wrong += r.Wrong
		sum.Resurrected += r.Resurrected
		sum.Lost += r.Lost
		sum.Backwards += r.Backwards
		if r.Wrong > 0 {
			sum.Failed++
		}
	}
	return sum, nil
}

// Plots returns the pictures of the page, by file name.
func (n *Numbers) Plots() map[string]string {
	cost := plot.Plot{
		Title: "Dollars a million events, by events a burst", XName: "events a burst",
		YName: "$ a million events", LogX: true, LogY: true,
	}
	fresh := plot.Plot{
		Title: "Freshness: share of bursts visible after",
		XName: "seconds since the newest event was sent", YName: "share",
	}
	for _, c := range Strongest() {
		line, curve := plot.Series{Name: c.Name}, plot.Series{Name: c.Name}
		for _, s := range Axes()[0].Values {
			line.X, line.Y = append(line.X, float64(s.Shape.Burst)), append(line.Y, n.Results[s.Key][c.Name].Dollars())
		}
		for i := range 101 {
			share := float64(i) / 100
			at := n.Results[baseName][c.Name].Fresh.At(share).Seconds()
			curve.X, curve.Y = append(curve.X, at), append(curve.Y, share)
		}
		cost.Series, fresh.Series = append(cost.Series, line), append(fresh.Series, curve)
	}
	return map[string]string{"cost.svg": cost.SVG(), "freshness.svg": fresh.SVG()}
}
