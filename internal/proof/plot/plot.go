package plot

import (
	"fmt"
	"math"
	"strings"
)

// Series is a line of a plot.
type Series struct {
	Name string
	X, Y []float64
}

// Plot is a line chart. On an axis in logarithms every value must be positive.
type Plot struct {
	Title, XName, YName string
	LogX, LogY          bool
	Series              []Series
}

// The chart's measures, in pixels, and colours that stay apart for those who see few.
const (
	plotWide, plotHigh             = 760, 420
	plotLeft, plotRight            = 70, 200
	plotTop, plotBottom            = 40, 50
	axisColour, gridColour, ground = "#444", "#ddd", "#fff"
)

var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// SVG draws the chart.
func (p Plot) SVG() string { return p.draw(plotHigh, `xmlns="http://www.w3.org/2000/svg"`) }

// draw draws the chart so high, with further attributes of its element.
func (p Plot) draw(high int, attributes string) string {
	x, y := p.scale(true), p.scale(false)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg %s viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" role="img" aria-label="%s">`+
		"\n", attributes, plotWide, high, escape(p.Title))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="%s"/>`+"\n", plotWide, high, ground)
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="15">%s</text>`+"\n", plotLeft, escape(p.Title))
	bottom, right := high-plotBottom, plotWide-plotRight
	for _, v := range x.ticks() {
		at := x.at(v, plotLeft, float64(right))
		fmt.Fprintf(&b,
			`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s"/>`+
				`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			at, plotTop, at, bottom, gridColour, at, bottom+16, number(v))
	}
	for _, v := range y.ticks() {
		at := y.at(v, float64(bottom), plotTop)
		fmt.Fprintf(&b,
			`<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+
				"\n", plotLeft, at, right, at, gridColour, plotLeft-6, at+4, number(v))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (plotLeft+right)/2, high-12,
		escape(p.XName))
	fmt.Fprintf(&b, `<text transform="translate(18 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n",
		(plotTop+bottom)/2, escape(p.YName))
	fmt.Fprintf(&b, `<path d="M%d %dV%dH%d" fill="none" stroke="%s"/>`+"\n", plotLeft, plotTop, bottom, right,
		axisColour)
	for i, s := range p.Series {
		colour := colours[i%len(colours)]
		var d strings.Builder
		for j := range s.X {
			verb := "L"
			if j == 0 {
				verb = "M"
			}
			fmt.Fprintf(&d, "%s%.1f %.1f", verb, x.at(s.X[j], plotLeft, float64(right)),
				y.at(s.Y[j], float64(bottom), plotTop))
		}
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", d.String(), colour)
		if len(s.X) <= 10 {
			for j := range s.X {
				fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, x.at(s.X[j], plotLeft, float64(right)),
					y.at(s.Y[j], float64(bottom), plotTop), colour)
			}
			b.WriteByte('\n')
		}
		legend := plotTop + 10 + 20*i
		fmt.Fprintf(&b,
			`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2"/><text x="%d" y="%d">%s</text>`+"\n",
			right+12, legend, right+34, legend, colour, right+40, legend+4, escape(s.Name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}

func number(v float64) string {
	if v >= 1000 {
		return Thousands(int(v))
	}
	return fmt.Sprintf("%.4g", v)
}

// Thousands writes a number with commas.
func Thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// scale maps values to pixels.
type scale struct {
	low, high float64
	log       bool
}

func (p Plot) scale(x bool) scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1), log: p.LogY}
	if x {
		s.log = p.LogX
	}
	for _, line := range p.Series {
		values := line.Y
		if x {
			values = line.X
		}
		for _, v := range values {
			s.low, s.high = min(s.low, v), max(s.high, v)
		}
	}
	switch {
	case s.log && !x:
		s.low, s.high = math.Pow(10, math.Floor(math.Log10(s.low))), math.Pow(10, math.Ceil(math.Log10(s.high)))
	case !s.log && x && s.low > s.high-s.low: // a stretch far from zero: zero would squeeze it
	case !s.log:
		s.low = min(s.low, 0)
	}
	if s.high <= s.low {
		s.high = s.low + 1
	}
	return s
}

func (s scale) at(v, from, to float64) float64 {
	share := (v - s.low) / (s.high - s.low)
	if s.log {
		share = math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return from + share*(to-from)
}

func (s scale) ticks() []float64 {
	var out []float64
	if s.log {
		for v := math.Pow(10, math.Floor(math.Log10(s.low))); v <= s.high*1.0001; v *= 10 {
			if v >= s.low*0.9999 {
				out = append(out, v)
			}
		}
		return out
	}
	step := math.Pow(10, math.Floor(math.Log10((s.high-s.low)/2)))
	for (s.high-s.low)/step > 8 {
		step *= 2
	}
	for v := math.Ceil(s.low/step) * step; v <= s.high*1.0001; v += step {
		out = append(out, v)
	}
	return out
}
