package bench

import (
	"fmt"
	"strings"
	"time"
)

// page is Markdown under construction.
type page struct{ strings.Builder }

func (p *page) line(format string, a ...any) { fmt.Fprintf(p, format+"\n", a...) }

func (p *page) text(s string) { p.WriteString(strings.TrimLeft(s, "\n") + "\n") }

// table writes a table whose first column is text and whose others are figures.
func (p *page) table(head []string, rows [][]string) {
	p.line("| %s |", strings.Join(head, " | "))
	p.line("|---%s|", strings.Repeat("|---:", len(head)-1))
	for _, r := range rows {
		p.line("| %s |", strings.Join(r, " | "))
	}
	p.line("")
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }

func micros(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d)/1e3) }

// dollars shows sums of all sizes with three figures or so.
func dollars(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
