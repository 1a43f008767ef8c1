package bench

import (
	"fmt"
	"strings"

	"github.com/lullhq/lull/internal/proof/plot"
)

// Summary is docs/numbers-summary.md: what the README shows.
func (n *Numbers) Summary() string {
	p := &page{}
	p.line("<!-- Written by `make bench`; do not edit. -->")
	var rows [][]string
	for _, c := range Contenders() {
		r := n.Results[baseName][c.Name]
		lacks := "-"
		if c.Lacks != "" {
			lacks, _, _ = strings.Cut(c.Lacks, ";")
		}
		rows = append(rows, []string{
			c.Name, dollars(r.Dollars()), fmt.Sprintf("%.2f", r.SinkWrites()), inSeconds(r.Fresh.At(0.99)),
			fmt.Sprintf("%.1f %%", 100*per(float64(r.Wrong), r.Docs)), lacks,
		})
	}
	p.line(
		"| 500 events/s, bursts of 5, quiet 5 s | $ / million events | sink writes / burst | p99 fresh, s | wrong in " +
			"the end | does not give |\n|---|---:|---:|---:|---:|---|")
	for _, r := range rows {
		p.line("| %s |", strings.Join(r, " | "))
	}
	reached := 0
	targets := n.Targets()
	for _, t := range targets {
		if t.Reached {
			reached++
		}
	}
	p.line("\n%d of %d targets reached; all figures, also where a peer is cheaper: [numbers](numbers.md).", reached,
		len(targets))
	return p.String()
}

// Plots are the pictures of the page, by file name.
func (n *Numbers) Plots() map[string]string {
	cost := plot.Plot{
		Title: "Dollars a million events, by events a burst", XName: "events a burst",
		YName: "$ a million events", LogX: true, LogY: true,
	}
	fresh := plot.Plot{
		Title: "Freshness: share of bursts visible after",
		XName: "seconds from the newest event's being sent", YName: "share",
	}
	for _, c := range Contenders() {
		s := plot.Series{Name: c.Name}
		for _, v := range n.Axes[0].Values {
			s.X, s.Y = append(s.X, float64(v.Shape.Burst)),
				append(s.Y, n.Results[axisKey(n.Axes[0], v)][c.Name].Dollars())
		}
		cost.Series = append(cost.Series, s)
		r := n.Results[baseName][c.Name]
		f := plot.Series{Name: c.Name}
		for i := range 101 {
			share := float64(i) / 100
			f.X, f.Y = append(f.X, r.Fresh.At(share).Seconds()), append(f.Y, share)
		}
		fresh.Series = append(fresh.Series, f)
	}
	return map[string]string{"cost.svg": cost.SVG(), "freshness.svg": fresh.SVG()}
}
