package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/proof/price"
)

// Page is docs/numbers.md.
func (n *Numbers) Page() string {
	p := &page{}
	p.text(`
# Numbers

Written by ` + "`make bench`" + `; do not edit. It runs lull's real code and five peers over the same traces, in one process.`)
	p.line("\n%s on %s. Prices: %s, list of %s (internal/proof/price/list.go).\n", n.Date.Format("2 January 2006"),
		n.Machine, price.USEast1.Region, price.USEast1.Date)
	p.text(`
Requests, writes, dollars and freshness are counted in virtual time over simulated services and do not depend on the machine; the last digit
may differ from run to run. Processor time is this machine's. What is assumed stands [at the end](#what-is-assumed).

## Targets
`)
	n.targets(p)
	n.baseline(p)
	n.axes(p)
	n.cheaper(p)
	n.lullAlone(p)
	n.special(p)
	n.aMonth(p)
	n.machine(p)
	n.assumed(p)
	return p.String()
}

func (n *Numbers) targets(p *page) {
	var rows [][]string
	for _, t := range n.Targets() {
		reached := "reached"
		if !t.Reached {
			reached = "**not reached**"
		}
		figure := t.Figure
		if t.Note != "" {
			figure += "; " + t.Note
		}
		rows = append(rows, []string{t.Measure, t.Goal, t.Floor, figure, reached})
	}
	p.line("| measure | target | floor | figure | |\n|---|---|---|---|---|")
	for _, r := range rows {
		p.line("| %s |", strings.Join(r, " | "))
	}
	p.line("")
}

// baseline is the base scenario in full.
func (n *Numbers) baseline(p *page) {
	p.text(`
## Side by side

500 events a second in bursts of 5 over 2 s, quiet 5 s, batches of 1,000, window 2 s, two pollers.
Freshness is from the newest event of a burst being sent until the sink shows it or something newer. "Went back" is how often an older version replaced a
newer one in the sink, "wrong" how many documents did not show their newest version in the end.
`)
	n.full(p, baseName)
	for _, c := range Contenders() {
		p.line("- **%s**: %s", c.Name, c.About)
	}
	p.line("")
}

func (n *Numbers) full(p *page, key string) {
	var rows [][]string
	for _, c := range Contenders() {
		r, ok := n.Results[key][c.Name]
		if !ok {
			continue
		}
		rows = append(rows, []string{
			c.Name, fmt.Sprintf("%.3f", r.RowWrites()), fmt.Sprintf("%.3f", r.RowReads()),
			fmt.Sprintf("%.3f", r.SinkWrites()),
			fmt.Sprintf("%.3f", per(float64(r.Counts.Starts), r.Bursts)),
			fmt.Sprintf("%.3f", per(float64(r.Counts.Transitions), r.Bursts)),
			fmt.Sprintf("%.3f", r.QueueCalls()), dollars(r.Dollars()), dollars(r.DollarsPerDocument()),
			inSeconds(r.Fresh.At(0.5)), inSeconds(r.Fresh.At(0.99)), inSeconds(r.Fresh.At(1)), thousands(r.Backwards),
			fmt.Sprintf("%s of %s", thousands(r.Wrong), thousands(r.Docs)),
		})
	}
	p.table([]string{
		"contender", "row writes / event", "row reads / event", "sink writes / burst", "timer starts / burst",
		"transitions / burst", "SQS calls / event",
		"$ / million events", "$ / million bursts", "fresh p50, s", "p99", "max", "went back", "wrong",
	}, rows)
}

func (n *Numbers) axes(p *page) {
	p.text(`
## One thing varied

Dollars a million events; everything else as above.

![Cost against burst factor](img/cost.svg)
`)
	for _, a := range n.Axes {
		n.along(p, a, func(r Result) string { return dollars(r.Dollars()) })
	}
	p.text(`
Sink writes a burst, where that changes: by events a burst and by pollers.
`)
	for _, i := range []int{0, 2} {
		n.along(p, n.Axes[i], func(r Result) string { return fmt.Sprintf("%.2f", r.SinkWrites()) })
	}
	p.text(`
Freshness, p50 / p99 / max in seconds, by the batching window. A window longer than quiet allows is refused at synth; lull counts due from the
time an event was sent, so that the window does not add to it.

![Freshness](img/freshness.svg)
`)
	n.along(p, n.Axes[3], func(r Result) string {
		return inSeconds(r.Fresh.At(0.5)) + " / " + inSeconds(r.Fresh.At(0.99)) + " / " + inSeconds(r.Fresh.At(1))
	})
}

func (n *Numbers) along(p *page, a Axis, f func(r Result) string) {
	head := []string{a.Name}
	for _, s := range a.Values {
		head = append(head, s.Name)
	}
	var rows [][]string
	for _, c := range Contenders() {
		row := []string{c.Name}
		for _, s := range a.Values {
			row = append(row, f(n.Results[axisKey(a, s)][c.Name]))
		}
		rows = append(rows, row)
	}
	p.table(head, rows)
}

// cheaper says where a peer costs less, and what is not bought for that.
func (n *Numbers) cheaper(p *page) {
	p.text(`
## Where a peer is cheaper, and what it does not give
`)
	for _, c := range Contenders()[1:] {
		var where []string
		var own, other []float64 // dollars, where the peer is cheaper
		seen := map[string]bool{}
		for _, a := range n.Axes {
			for _, s := range a.Values {
				key := axisKey(a, s)
				if seen[key] {
					continue
				}
				seen[key] = true
				l, r := n.lull(key).Dollars(), n.Results[key][c.Name].Dollars()
				if r >= l {
					continue
				}
				own, other = append(own, l), append(other, r)
				name := a.Name + " " + s.Name
				if key == baseName {
					name = baseName
				}
				where = append(where, fmt.Sprintf("%s ($%s against $%s)", name, dollars(r), dollars(l)))
			}
		}
		switch len(where) {
		case 0:
			p.line("- **%s** is nowhere cheaper here. It does not give: %s.", c.Name, c.Lacks)
		case len(seen):
			p.line("- **%s** is cheaper everywhere here: $%s to $%s against $%s to $%s. It does not give: %s.", c.Name,
				dollars(slices.Min(other)), dollars(slices.Max(other)),
				dollars(slices.Min(own)), dollars(slices.Max(own)), c.Lacks)
		default:
			p.line("- **%s** is cheaper at %s. It does not give: %s.", c.Name, strings.Join(where, ", "), c.Lacks)
		}
	}
	p.line("")
	p.text(`

What lull gives in each of these: the newest version wins in whatever order events come, one sink write a burst, one receive a hold, and a message that
stays in SQS until the sink and the row have it.
`)
}

// lullAlone shows how lull's own figures follow their rule.
func (n *Numbers) lullAlone(p *page) {
	p.text(`
## lull's own figures

A is in how many receive batches a burst arrives, B its events. Each batch admits a document once, each burst is claimed and committed once:
(A+2)/B row writes an event. "Refused" are admissions that a newer version had overtaken; they cost a write unit too.
Two pollers do not keep up with 5,000 events a second: each hands over a thousand at a time and waits for that many admissions, on the part of a processor that receive's memory buys. What
is backlogged is late, and a burst that is split by it is written more than once. AWS starts more pollers as a backlog grows, up to the lane's maxConcurrency.
`)
	var rows [][]string
	row := func(name string, r Result) {
		rows = append(rows, []string{
			name, fmt.Sprintf("%.2f", r.Admissions()), fmt.Sprintf("%.3f", r.IdealWrites()),
			fmt.Sprintf("%.3f", r.RowWrites()),
			fmt.Sprintf("%.1f %%", 100*per(float64(r.Counts.RowRefused), r.Counts.RowWrites)),
			fmt.Sprintf("%.4f", r.SinkWrites()),
			fmt.Sprintf("%.1f", per(float64(r.Events), r.Counts.Starts)),
			fmt.Sprintf("%.2f", per(float64(r.Counts.Turns), r.Counts.Starts)),
			dollars(r.Dollars()), dollars(r.DollarsEager()), inSeconds(r.Fresh.At(0.5)), inSeconds(r.Fresh.At(0.99)),
			inSeconds(r.Fresh.At(1)),
		})
	}
	seen := map[string]bool{}
	for _, a := range n.Axes {
		for _, s := range a.Values {
			if key := axisKey(a, s); !seen[key] {
				seen[key] = true
				row(key, n.lull(key))
			}
		}
	}
	for _, key := range []string{
		oneOfTenName, crowdedName, standardName, fewDocsName, manyDocsName, disorderName,
		monthName, patientName, faultsName,
	} {
		row(key, n.lull(key))
	}
	p.table([]string{
		"scenario", "A", "(A+2)/B", "row writes / event", "refused", "sink writes / burst", "events / flight",
		"turns / flight", "$ / million events",
		"$ with eager polls", "fresh p50, s", "p99", "max",
	}, rows)
}

func (n *Numbers) special(p *page) {
	p.line("## Disorder\n\n%s.\n", strings.ToUpper(disorderAbout[:1])+disorderAbout[1:])
	n.full(p, disorderName)
	p.text(`
## One hot document

A thousand events a second for one document that is never quiet, for a minute. Here freshness is of every event. DynamoDB takes 1,000 writes a
second of one item; peers that write once or more for each event are beyond that in earnest, here they are only counted. One burst ends every max wait (30 s).
`)
	n.full(p, hotName)
	plain, leading := n.lull(singlesName), n.lull(leadingName)
	p.text(`
## Single events and ` + "`leading`" + `

With ` + "`leading: true`" + ` an event of a document that was quiet is due at once, and what follows it waits as usual: a second write for a burst, none for a single event.
50 single events a second, quiet 5 s, window 2 s:
`)
	p.table([]string{
		"", "fresh p50, s", "p99", "max", "sink writes / burst", "row writes / event",
		"$ / million events",
	}, [][]string{
		single("as set by default", plain), single("leading", leading),
	})
}

func single(name string, r Result) []string {
	return []string{
		name, inSeconds(r.Fresh.At(0.5)), inSeconds(r.Fresh.At(0.99)), inSeconds(r.Fresh.At(1)),
		fmt.Sprintf("%.3f", r.SinkWrites()),
		fmt.Sprintf("%.3f", r.RowWrites()), dollars(r.Dollars()),
	}
}

func (n *Numbers) aMonth(p *page) {
	p.text(`
## A month

300,000 events a day (GOV.UK's peak) in bursts of 3 at an even rate, lull's defaults, five pollers. Batches are small then, and every batch is a flight.
Whoever can wait three seconds longer has that price today: a window of 5 s with quiet 8 s are settings. The last rows are lull's real receive and index on other halves (internal/proof/bench/variant.go), to see what they would save; ADRs say what became of them.
`)
	head := []string{"$ a month"}
	for _, l := range price.USEast1.Bill(price.Usage{})[:6] {
		head = append(head, l.Name)
	}
	head = append(head, "sum", "with eager polls", "sink writes / burst", "fresh p50, s", "p99", "received / event")
	var rows [][]string
	row := func(r Result) {
		cells := []string{r.Contender}
		for _, l := range price.USEast1.Bill(r.Usage)[:6] {
			cells = append(cells, fmt.Sprintf("%.2f", per(l.Dollars, r.Events)*1e6*eventsAMonth))
		}
		rows = append(rows, append(cells, fmt.Sprintf("**%.1f**", r.Month()),
			fmt.Sprintf("%.1f", r.DollarsEager()*eventsAMonth),
			fmt.Sprintf("%.2f", r.SinkWrites()), inSeconds(r.Fresh.At(0.5)), inSeconds(r.Fresh.At(0.99)),
			fmt.Sprintf("%.2f", per(float64(r.Counts.Received), r.Events))))
	}
	for _, c := range Contenders() {
		row(n.Results[monthName][c.Name])
	}
	slow := n.lull(patientName)
	slow.Contender = "lull, window 5 s, quiet 8 s"
	row(slow)
	for _, c := range Variants() {
		r := n.Variants[c.Name]
		r.Contender = "lull, " + c.Name
		row(r)
	}
	p.table(head, rows)
	for _, c := range Variants() {
		p.line("- **%s**: %s", c.Name, c.About)
	}
	r := n.lull(monthName)
	p.line("\nOf %s flights %s had a manifest small enough for an execution's input; the mean one has %s bytes.\n",
		thousands(r.Counts.Manifests), thousands(r.Counts.Small),
		thousands(int(per(float64(r.Counts.ManifestBytes), r.Counts.Manifests))))
}

func (n *Numbers) machine(p *page) {
	if len(n.Pairs) == 0 {
		return
	}
	p.text(`
## Processor time

lull's receive and index, and the idempotency loop, with the real AWS SDK and the real OpenSearch client: every request is built, signed and its answer parsed, but answered in the
process, so that sockets and TLS cost neither side anything. Both decode with lull's sources. Measured in turns in one run, garbage collection included;
the ratio is the median, with the least and the greatest of the rounds. The functions behind the requests are counted for whoever asks.
`)
	var rows [][]string
	for _, x := range n.Pairs {
		rows = append(rows, []string{
			fmt.Sprintf("%s (A = %d)", x.Name, x.A), micros(x.Lull.CPU), micros(x.Loop.CPU),
			fmt.Sprintf("**%.2f**", x.Ratio()),
			fmt.Sprintf("%.2f to %.2f", x.Ratios[0], x.Ratios[len(x.Ratios)-1]), fmt.Sprintf("%.0f", x.Lull.Allocs),
			fmt.Sprintf("%.0f", x.Loop.Allocs),
		})
	}
	p.table([]string{
		"workload", "lull, µs / event", "loop, µs / event", "ratio", "rounds", "lull, allocations / event",
		"loop",
	}, rows)
	for _, i := range n.Intakes {
		p.line(
			"Embedded stack, sink %s: %s events in bursts of 10 were judged and held after %.2f s (%s a second) and "+
				"written after %.1f s, quiet included.\n",
			i.Sink, thousands(i.Events), i.Taken.Seconds(), thousands(int(i.PerSecond())), i.Settled.Seconds())
	}
}

func (n *Numbers) assumed(p *page) {
	p.text(`
## What is assumed

- Latencies, means of one request; half of each is certain, the rest exponential:`)
	for _, l := range []struct {
		name string
		d    time.Duration
	}{
		{"DynamoDB", tableLatency},
		{"SQS", queueLatency},
		{"S3 write", putLatency},
		{"S3 read", getLatency},
		{"StartExecution", startLatency},
		{"sink request", sinkLatency},
		{"each document in it", sinkDocument},
		{"warm invocation", invokeLatency},
		{"state transition", stateLatency},
	} {
		p.line("  - %s: %s", l.name, l.d)
	}
	p.line(
		"- Functions: receive %d MB, index %d MB, peers %d MB; %s of one core for an invocation, %s for a message, "+
			"%s for a request, at %d MB a core.",
		receiveMegabytes, indexMegabytes, receiveMegabytes, invocationCPU, messageCPU, requestCPU, coreMegabytes)
	p.text(`
- No cold starts. An event source mapping hands out messages to its pollers in turn. Its polls are billed as full requests of up to ten messages and 64 KB; "eager polls" counts one poll each time
  the last one is answered, which is the most a poller can need. AWS does not say where between the two it is.
- Sending is the upstream's cost and the same for everybody. Storage, logs, metrics, alarms, keys and data transfer are left out. prune's runs are in.
- Peers work on 32 documents of a batch at a time and keep the order within a document and a batch; the libraries that they stand for go one by one. Their tables hold
  items below 1 KB. The lock and the version key of lock polling are items of the table, not of a cache that is paid by the hour.
- Faults are the standard mix of docs/faults.md. Peers are not run under it: what they would lose is not in their figures.`)
}
