// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lullhq/lull/internal/simulation/sim"
)

// surge parses Surge. ok is false if the text is wrong.
func (l Load) surge() (s sim.Surge, ok bool) {
	if l.Surge == "" {
		return s, true
	}
	factor, from, _ := strings.Cut(l.Surge, "@")
	var wrong [2]error
	s.Factor, wrong[0] = strconv.ParseFloat(factor, 64)
	s.From, wrong[1] = time.ParseDuration(from)
	return s, wrong == [2]error{} && s.Factor > 0 && s.Factor <= maxSurge &&
		s.From >= 0 && s.From < time.Duration(l.Lasting)
}

// surged returns the factor of the surge, or 1 if the load does not grow.
func (l Load) surged() float64 {
	s, _ := l.surge()
	return max(s.Factor, 1)
}

// stretches is the number of parts into which the output divides a run.
const stretches = 12

// Stretches divides a timeline into a few parts. For each part it lists the freshness of documents,
// the number of writes, and the number of waiting messages.
func Stretches(timeline []sim.Second) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "from\tp50\tp99\twritten a second\twaiting\n")
	for _, p := range sim.Points(timeline, stretches) {
		round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
		fmt.Fprintf(w, "%s\t%s\t%s\t%.1f\t%d\n", p.From, round(p.P50), round(p.P99), p.Written, p.Waiting)
	}
	_ = w.Flush() // writing to a Builder never fails
	return b.String()
}
