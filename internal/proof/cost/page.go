package cost

import (
	"fmt"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/lullhq/lull/internal/proof/price"
)

// String is the estimate as a table, no wider than a hundred columns.
func (e Estimate) String() string {
	var b strings.Builder
	l := e.Load
	if l.Rate == 0 {
		fmt.Fprintf(&b, "A month without events")
	} else {
		fmt.Fprintf(&b, "A month of %.4g events a second in bursts of %d, %g hours a day", l.Rate, l.Burst, l.Hours)
	}
	fmt.Fprintf(&b, "; %d sink%s, %d documents\n\n", e.Sinks, map[bool]string{true: "s"}[e.Sinks > 1], l.Documents)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\tprice\tfloor: %d pollers\t$\tceiling: %d pollers\t$\n", e.Floor.Pollers, e.Ceiling.Pollers)
	service := ""
	for _, p := range pairs(e.Floor.Items, e.Ceiling.Items) {
		if p.of.Service != service {
			service = p.of.Service
			fmt.Fprintf(w, "%s\t\t\t\t\t\n", service)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%.2f\t%s\t%.2f\n", p.of.What, priced(p.of), count(p.floor.Count), p.floor.Dollars,
			count(p.ceiling.Count), p.ceiling.Dollars)
	}
	fmt.Fprintf(w, "total a month\t\t\t%.2f\t\t%.2f\n", e.Floor.Total, e.Ceiling.Total)
	if e.Events > 0 {
		fmt.Fprintf(w, "a million events\t\t\t%.3f\t\t%.3f\n", e.Floor.PerMillion, e.Ceiling.PerMillion)
		fmt.Fprintf(w, "  of that, requests and time\t\t\t%.3f\t\t%.3f\n", e.Floor.Requests/e.Events*1e6,
			e.Ceiling.Requests/e.Events*1e6)
	}
	_ = w.Flush() // a Builder takes everything
	fmt.Fprintf(&b, "\nList prices, %s; other regions differ. Not in it: free tiers, data transfer, NAT.\n",
		e.Prices)
	return trailing.ReplaceAllString(b.String(), "")
}

// trailing blanks are what the table fills its last column with.
var trailing = regexp.MustCompile(`(?m) +$`)

// pair is one line of both bills.
type pair struct{ of, floor, ceiling price.Item }

// pairs puts the lines of the two bills beside each other, service by service.
func pairs(floor, ceiling []price.Item) (all []pair) {
	var order []string
	lines := map[string]*pair{}
	add := func(i price.Item, to func(p *pair) *price.Item) {
		key := i.Service + "\t" + i.What
		if lines[key] == nil {
			lines[key] = &pair{of: i}
			order = append(order, key)
		}
		*to(lines[key]) = i
	}
	for _, i := range floor {
		add(i, func(p *pair) *price.Item { return &p.floor })
	}
	for _, i := range ceiling {
		add(i, func(p *pair) *price.Item { return &p.ceiling })
	}
	for len(order) > 0 {
		service, _, _ := strings.Cut(order[0], "\t")
		var rest []string
		for _, key := range order {
			if lines[key].of.Service == service {
				all = append(all, *lines[key])
			} else {
				rest = append(rest, key)
			}
		}
		order = rest
	}
	return all
}

// priced is a price with what it is for.
func priced(i price.Item) string {
	if i.Per == 1 {
		return fmt.Sprintf("%g", i.Price)
	}
	return fmt.Sprintf("%g/M", i.Price)
}

// count is a number with three figures or so.
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
