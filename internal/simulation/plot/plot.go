// SPDX-License-Identifier: Apache-2.0

package plot

import (
	_ "embed"
	"fmt"
	"math"
	"strings"
	"text/template"
)

// Series is one line of a plot.
type Series struct {
	Name string
	X, Y []float64
}

// Plot is a line chart. On a logarithmic axis every value must be positive.
type Plot struct {
	Title, XName, YName string
	LogX, LogY          bool
	Series              []Series
}

// The measures of the chart in pixels. The template contains the others.
const (
	wide, high             = 760, 420
	left, right, top, foot = 70, 560, 40, 50
)

// colours are easy to distinguish, also for colour-blind readers.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace

//go:embed plot.svg.tmpl
var text string

var chart = template.Must(template.New("chart").Funcs(template.FuncMap{
	"escape": escape,
	"number": number,
	"colour": func(i int) string { return colours[i%len(colours)] },
	"legend": func(i, y int) int { return y + 20*i },
	"pixels": func(v float64, more ...float64) string {
		for _, m := range more {
			v += m
		}
		return fmt.Sprintf("%.1f", v)
	},
}).Parse(text))

// SVG draws the chart.
func (p Plot) SVG() string { return p.draw(high, `xmlns="http://www.w3.org/2000/svg"`) }

// draw draws the chart with this height, and adds attributes to its svg element.
func (p Plot) draw(high int, attributes string) string {
	bottom := high - foot
	x, y := p.scale(true), p.scale(false)
	x.from, x.to = left, right
	y.from, y.to = float64(bottom), top
	var b strings.Builder
	err := chart.Execute(&b, struct {
		Plot
		Attributes           string
		High, Bottom, Middle int
		X, Y                 scale
	}{p, attributes, high, bottom, (top + bottom) / 2, x, y})
	if err != nil {
		panic(err) // the template and its data are both in this package
	}
	return b.String()
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
	from, to  float64 // pixels
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
	case !s.log && x && s.low > s.high-s.low: // the values are far from zero, and an axis from zero would compress them
	case !s.log:
		s.low = min(s.low, 0)
	}
	if s.high <= s.low {
		s.high = s.low + 1
	}
	return s
}

// At returns the position of a value in pixels.
func (s scale) At(v float64) float64 {
	share := (v - s.low) / (s.high - s.low)
	if s.log {
		share = math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return s.from + share*(s.to-s.from)
}

// Below returns the position that is this many pixels below the beginning of a vertical scale.
func (s scale) Below(pixels int) int { return int(s.from) + pixels }

// Ticks returns round values on the scale.
func (s scale) Ticks() []float64 {
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
