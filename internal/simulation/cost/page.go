// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/lullhq/lull/internal/simulation/price"
)

// smallLoad is the events a second below which a page says why a million events are expensive.
const smallLoad = 50

// String returns the estimate as a table of at most a hundred columns.
func (e Estimate) String() string {
	var b strings.Builder
	l := e.Load
	if l.Rate == 0 {
		fmt.Fprintf(&b, "A month without events")
	} else {
		fmt.Fprintf(&b, "A month of %s events a second in bursts of %d, %g hours a day", rate(l.Rate), l.Burst, l.Hours)
	}
	fmt.Fprintf(&b, "; %d sink%s, %d documents\n", e.Sinks, map[bool]string{true: "s"}[e.Sinks > 1], l.Documents)
	if e.Parts > 1 {
		fmt.Fprintf(&b, "In %d stacks of %s events a second each\n", e.Parts, rate(l.Rate/float64(e.Parts)))
	}
	if e.provisioned {
		fmt.Fprintf(&b, "Provisioned table, %.4g %% of its capacity used on average\n", cmp.Or(l.Used, UsualUse))
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\tprice\tfloor: %d pollers\t$\tceiling: %d pollers\t$\n", e.Floor.Pollers, e.Ceiling.Pollers)
	service := ""
	for _, p := range pairs(e.Floor.Items, e.Ceiling.Items) {
		if p.of.Service != service {
			service = p.of.Service
			fmt.Fprintf(w, "%s\t\t\t\t\t\n", service)
		}
		floor, ceiling := p.bills[0], p.bills[1]
		fmt.Fprintf(w, "  %s\t%s\t%s\t%.2f\t%s\t%.2f\n", p.of.What, priced(p.of), count(floor.Count), floor.Dollars,
			count(ceiling.Count), ceiling.Dollars)
	}
	fmt.Fprintf(w, "total a month\t\t\t%.2f\t\t%.2f\n", e.Floor.Total, e.Ceiling.Total)
	if e.Events > 0 {
		fmt.Fprintf(w, "a million events\t\t\t%.3f\t\t%.3f\n", e.Floor.PerMillion, e.Ceiling.PerMillion)
		fmt.Fprintf(w, "  of that, requests and time\t\t\t%.3f\t\t%.3f\n", e.Floor.Requests/e.Events*1e6,
			e.Ceiling.Requests/e.Events*1e6)
	}
	_ = w.Flush() // writing to a Builder never fails
	if e.Events > 0 && l.Rate < smallLoad {
		b.WriteString("\nA small load pays more for a million events: alarms, metrics and idle polling cost the same at\n" +
			"any load, and batches are small.\n")
	}
	fmt.Fprintf(&b, "\nList prices, %s; other regions differ. Not in it: free tiers, data transfer, NAT.\n",
		e.Prices)
	return trailing.ReplaceAllString(b.String(), "")
}

// rate is a number of events a second.
func rate(n float64) string {
	if n >= 1e4 {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.4g", n)
}

// trailing matches the blanks that fill the last column of the table.
var trailing = regexp.MustCompile(`(?m) +$`)

// pair is a line of the bill, with its item in the floor and in the ceiling.
type pair struct {
	of    price.Item
	bills [2]price.Item
}

// pairs joins the lines of the two bills, service by service.
func pairs(floor, ceiling []price.Item) (all []pair) {
	lines, services := map[string]int{}, map[string]int{} // the index of each line, and the order of each service
	for bill, items := range [...][]price.Item{floor, ceiling} {
		for _, i := range items {
			key := i.Service + "\t" + i.What
			at, known := lines[key]
			if !known {
				at = len(all)
				lines[key], all = at, append(all, pair{of: i})
			}
			if _, known := services[i.Service]; !known {
				services[i.Service] = len(services)
			}
			all[at].bills[bill] = i
		}
	}
	slices.SortStableFunc(all, func(a, b pair) int {
		return cmp.Compare(services[a.of.Service], services[b.of.Service])
	})
	return all
}

// priced returns a price with its unit.
func priced(i price.Item) string {
	if i.Per == 1 {
		return fmt.Sprintf("%g", i.Price)
	}
	return fmt.Sprintf("%g/M", i.Price)
}

// count formats a number with about three figures.
func count(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.2fM", n/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%.1fk", n/1e3)
	case n >= 100 || n == float64(int(n)):
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.3f", n)
}
