// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// elements returns the names of a document's elements, in order. The test fails if the document is
// not XML.
func elements(t *testing.T, svg string) (names []string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok {
			names = append(names, start.Name.Local)
		}
	}
}

func count(names []string, name string) int {
	return len(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n != name }))
}

func line(name string, y ...float64) Series {
	s := Series{Name: name, Y: y}
	for i := range y {
		s.X = append(s.X, float64(i+1))
	}
	return s
}

func TestAPlotHasALineAndALegendForEverySeries(t *testing.T) {
	t.Parallel()
	svg := Plot{
		Title: "growth <of> \"things\"", XName: "n", YName: "units",
		Series: []Series{line("one & only", 1, 2, 3), line("two", 3, 2, 1)},
	}.SVG()
	names := elements(t, svg)
	if got, want := count(names, "path"), 3; got != want { // two lines and the axes
		t.Errorf("%d paths, want %d", got, want)
	}
	for _, text := range []string{"growth &lt;of&gt; &quot;things&quot;", "one &amp; only", ">two<"} {
		if !strings.Contains(svg, text) {
			t.Errorf("the picture does not say %s", text)
		}
	}
}

// TestLogarithmsSpreadEvenly: on a logarithmic axis, a factor of ten always has the same length.
func TestLogarithmsSpreadEvenly(t *testing.T) {
	t.Parallel()
	s := Plot{LogX: true, LogY: true, Series: []Series{line("", 10, 100, 1000)}}.scale(false)
	s.to = 100
	if low, middle, high := s.At(10), s.At(100), s.At(1000); low != 0 || middle < 49.99 ||
		middle > 50.01 || high != 100 {
		t.Errorf("10, 100 and 1,000 are at %v, %v and %v of 100", low, middle, high)
	}
}

// TestAStackDrawsEveryChartWhole: every chart has its own scale, so that large values in one chart
// do not flatten another chart.
func TestAStackDrawsEveryChartWhole(t *testing.T) {
	t.Parallel()
	small := Plot{Title: "small", Series: []Series{line("a", 1, 2)}}
	large := Plot{Title: "large", Series: []Series{line("b", 1e6, 2e6)}}
	svg := Stack("both", small, large)
	names := elements(t, svg)
	if got, want := count(names, "svg"), 3; got != want {
		t.Errorf("%d svg elements, want %d: one around two", got, want)
	}
	for _, text := range []string{`aria-label="both"`, ">small<", ">large<", "2,000,000", `y="210"`} {
		if !strings.Contains(svg, text) {
			t.Errorf("the picture lacks %s", text)
		}
	}
}

// TestAStretchFarFromZeroFillsTheChart: values far from zero fill the chart, and the axis has round
// numbers. If the values are near zero, the axis begins at zero.
func TestAStretchFarFromZeroFillsTheChart(t *testing.T) {
	t.Parallel()
	far := Plot{Series: []Series{{X: []float64{124.5, 136.2}, Y: []float64{1, 2}}}}.scale(true)
	if far.low != 124.5 || !slices.Equal(far.Ticks()[:2], []float64{126, 128}) {
		t.Errorf("begins at %v with ticks %v, want 124.5 and 126, 128, ...", far.low, far.Ticks())
	}
	if near := (Plot{Series: []Series{{X: []float64{3, 10}, Y: []float64{1, 2}}}}).scale(true); near.low != 0 {
		t.Errorf("begins at %v, want 0", near.low)
	}
}

// TestAFlatLineHasAScale: a chart without values, or with only one value, also has an axis.
func TestAFlatLineHasAScale(t *testing.T) {
	t.Parallel()
	for _, p := range []Plot{{Series: []Series{line("", 0, 0)}}, {Series: []Series{line("", 7)}}} {
		if svg := p.SVG(); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%+v draws %s", p, svg)
		}
	}
}
