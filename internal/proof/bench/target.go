// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/simulation/plot"
)

// Target is a row of the table of targets.
type Target struct {
	Measure string
	Goal    string
	Floor   string
	Figure  string
	Reached bool
	Note    string // why the target is not reached, or which reading of the target is not reached
}

// Targets compares the numbers with their targets.
func (n *Numbers) Targets() []Target { return append(n.Exact(), n.measured()...) }

// Reached returns how many of the targets are reached.
func (n *Numbers) Reached() (reached int) {
	for _, t := range n.Targets() {
		if t.Reached {
			reached++
		}
	}
	return reached
}

// worst returns lull's largest value, and its scenario. worst leaves out the scenarios in but, the
// document that is never quiet, and faults, because rows and freshness follow another rule there.
func worst[T cmp.Ordered](n *Numbers, value func(r Result) T, but ...string) (most T, where string) {
	for _, key := range append(keys(varied()), disorderName, monthName, oneOfTenName, fewDocsName, manyDocsName) {
		if v := value(n.Lull(key)); v > most && !slices.Contains(but, key) {
			most, where = v, key
		}
	}
	return most, where
}

// Exact returns the targets that are measured in virtual time.
func (n *Numbers) Exact() []Target {
	b, two, ten, faults := n.Lull(baseName), n.Lull(twoName), n.Lull(oneOfTenName), n.Lull(faultsName)
	month, monthTwo := n.Lull(monthName), n.Lull(monthTwoName)
	rows, rowsAt := worst(n, func(r Result) float64 { return r.RowWrites() / r.IdealWrites() })
	sink, sinkAt := worst(n, Result.SinkWrites, disorderName)
	late, lateAt := worst(n, func(r Result) time.Duration { return r.Late(0.99) }, disorderName)
	return []Target{
		{
			Measure: "row writes an event, against (A+2)/B of the trace's own A", Goal: "within 12 %", Floor: "3/B",
			Figure: fmt.Sprintf("at most %+.1f %% (%s)", 100*(rows-1), rowsAt), Reached: rows <= 1.12,
		},
		{
			Measure: "the same in the friendliest case, bursts of 10 and one poller, which AWS never has",
			Goal:    "<= 0.45", Floor: "0.30",
			Figure: fmt.Sprintf("%.3f (A = %.2f)", ten.RowWrites(), ten.Admissions()), Reached: ten.RowWrites() <= 0.45,
		},
		{
			Measure: "sink writes a burst, no faults", Goal: "<= 1.01", Floor: "1",
			Figure: fmt.Sprintf("at most %.4f (%s)", sink, sinkAt), Reached: sink <= 1.01,
		},
		{
			Measure: "sink writes a burst, standard faults", Goal: "<= 1.15", Floor: "1",
			Figure: fmt.Sprintf("%.4f", faults.SinkWrites()), Reached: faults.SinkWrites() <= 1.15,
		},
		{
			Measure: "p99 freshness - quiet, no faults", Goal: "<= 1.3 s, whatever the window", Floor: "0.3 s",
			Figure:  fmt.Sprintf("at most %.2f s (%s)", late.Seconds(), lateAt),
			Reached: late <= 1300*time.Millisecond,
			Note:    "up to a second of it is Step Functions' whole seconds",
		},
		{
			Measure: "p99 freshness under the standard fault mix", Goal: "<= 60 s",
			Figure: fmt.Sprintf("%.1f s (max %.1f s; %d of %s documents wrong in the end)",
				faults.Fresh.At(0.99).Seconds(), faults.Fresh.At(1).Seconds(), faults.Wrong,
				plot.Thousands(faults.Docs)),
			Reached: faults.Fresh.At(0.99) <= time.Minute && faults.Wrong == 0,
		},
		{
			Measure: "dollars a million events: 500/s, bursts of 5, defaults, five pollers",
			Goal:    "<= 0.80", Floor: "0.6", Figure: fmt.Sprintf("%.3f", b.Dollars()), Reached: b.Dollars() <= 0.80,
			Note: fmt.Sprintf("%.3f with eager polls", b.DollarsEager()),
		},
		{
			Measure: "dollars a million events, the same with two pollers, the fewest that AWS may use", Goal: "<= 0.60",
			Figure: fmt.Sprintf("%.3f (%.3f)", two.Dollars(), two.DollarsEager()), Reached: two.Dollars() <= 0.60,
		},
		{
			Measure: "dollars a month for requests and functions, 300,000 events a day in bursts of 3 (GOV.UK's peak), " +
				"defaults, two pollers",
			Goal:    "<= 50",
			Figure:  fmt.Sprintf("%.0f; %.0f with five pollers", monthTwo.Month(), month.Month()),
			Reached: monthTwo.Month() <= 50,
			Note:    fmt.Sprintf("with five, a flight has %.1f messages", per(month.Events, month.Counts.Starts)),
		},
	}
}

// measured returns the targets that need this machine's own time, if they were measured. measured
// also returns the target that compares two scenarios.
func (n *Numbers) measured() (list []Target) {
	if len(n.Pairs) > 0 {
		p := n.Pairs[0]
		list = append(list, Target{
			Measure: "processor time an event against the idempotency loop, same run; " + p.Name, Goal: "<= 0.3",
			Figure: fmt.Sprintf("%.2f (A = %d)", p.Ratio(), p.A), Reached: p.Ratio() <= 0.3,
			Note: fmt.Sprintf("%.1f requests to the table for an event, against the loop's 2; the SDK's calls are "+
				"nearly all of the time", per(p.A+2, p.Burst)),
		})
	}
	if n.Allocs.Handle > 0 {
		list = append(list, Target{
			Measure: "allocations a message, decode and collapse", Goal: "<= 8", Floor: "4",
			Figure: fmt.Sprintf("%.1f, judged and packed into the manifest too; %.1f more to read the SQS event",
				n.Allocs.Handle, n.Allocs.Read),
			Reached: n.Allocs.few(),
		})
	}
	for _, i := range n.Intakes {
		list = append(list, Target{
			Measure: "embedded stack, settled: " + i.Name(),
			Goal:    ">= 20,000 events/s", Figure: plot.Thousands(i.PerSecond()) + " events/s",
			Reached: i.PerSecond() >= 20_000,
		})
	}
	few, many := n.Lull(fewDocsName), n.Lull(manyDocsName)
	change := many.Dollars()/few.Dollars() - 1
	list = append(list, Target{
		Measure: "10 times the documents", Goal: "cost an event unchanged within 5 %",
		Figure: fmt.Sprintf("%+.1f %% (%s to %s documents)", 100*change, plot.Thousands(few.Docs),
			plot.Thousands(many.Docs)),
		Reached: math.Abs(change) <= 0.05,
	})
	if len(n.Binaries) > 0 {
		var sizes []string
		for _, b := range n.Binaries {
			sizes = append(sizes, fmt.Sprintf("%s %.2f", b.Name, float64(b.Bytes)/1e6))
		}
		list = append(list, Target{
			Measure: "start to first response, processor time; arm64 binary", Goal: "measured; <= 12 MB",
			Figure: fmt.Sprintf("%.1f ms, %.1f ms of processor time (receive, ten messages admitted and held); %s MB",
				n.Start.Wall.Seconds()*1e3, n.Start.CPU.Seconds()*1e3, strings.Join(sizes, ", ")),
			Reached: !slices.ContainsFunc(n.Binaries, func(b Binary) bool { return b.Bytes > 12_000_000 }),
		})
	}
	return list
}
