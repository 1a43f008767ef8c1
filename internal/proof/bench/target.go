package bench

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Target is a line of the table of targets.
type Target struct {
	Measure string
	Goal    string
	Floor   string
	Figure  string
	Reached bool
	Note    string // why it is not reached, or under which reading it is not
}

// Goals.
const (
	maxWritesOverIdeal = 1.12
	maxTenWrites       = 0.45
	maxSinkWrites      = 1.01
	maxSinkFaults      = 1.15
	maxLate            = 1300 * time.Millisecond
	maxFaultFreshness  = 60 * time.Second
	maxDollars         = 0.80
	maxMonth           = 50
	maxRatio           = 0.3
	maxAllocs          = 8
	minIntake          = 20_000
	maxDocsChange      = 0.05
	maxBinary          = 12_000_000
)

// eventsAMonth is 300,000 a day for thirty days, in millions.
const eventsAMonth = 0.3 * 30

// Month is what a month of the month's scenario costs.
func (r Result) Month() float64 { return r.Dollars() * eventsAMonth }

// Targets compares the numbers with what was asked for.
func (n *Numbers) Targets() []Target {
	b := n.lull(baseName)
	return append([]Target{
		n.rowWrites(), n.tenABurst(), n.sinkWrites(), n.sinkWritesUnderFaults(), n.late(), n.freshUnderFaults(),
		{
			Measure: "dollars a million events: 500/s, burst 5, batch 1,000, window 2 s, two pollers, Express",
			Goal: "<= 0.80 (one execution per burst: " +
				fmt.Sprintf("%.0f here)", n.Results[baseName]["execution per document"].Dollars()), Floor: "0.6",
			Figure: fmt.Sprintf("%.3f", b.Dollars()), Reached: b.Dollars() <= maxDollars,
			Note: fmt.Sprintf(
				"with polls of ten messages; %.3f if a poller asks again as soon as it is answered, which AWS does "+
					"not say", b.DollarsEager()),
		},
		n.month(),
	}, n.own()...)
}

// steady are the scenarios in which rows and freshness follow their rule: all but the document that
// is never quiet, and faults.
func (n *Numbers) steady(f func(key string, r Result)) {
	for _, a := range n.Axes {
		for _, s := range a.Values {
			f(axisKey(a, s), n.lull(axisKey(a, s)))
		}
	}
	for _, key := range []string{disorderName, monthName, oneOfTenName, fewDocsName, manyDocsName} {
		f(key, n.lull(key))
	}
}

func (n *Numbers) rowWrites() Target {
	worst, where := 0.0, ""
	n.steady(func(key string, r Result) {
		if over := r.RowWrites() / r.IdealWrites(); over > worst {
			worst, where = over, key
		}
	})
	return Target{
		Measure: "row writes an event, against (A+2)/B of the trace's own A", Goal: "within 12 %", Floor: "3/B",
		Figure: fmt.Sprintf("at most %+.1f %% (%s)", 100*(worst-1), where), Reached: worst <= maxWritesOverIdeal,
	}
}

func (n *Numbers) tenABurst() Target {
	r := n.lull(oneOfTenName)
	return Target{
		Measure: "row writes an event, bursts of 10, one poller", Goal: "<= 0.45", Floor: "0.30",
		Figure: fmt.Sprintf("%.3f (A = %.2f)", r.RowWrites(), r.Admissions()), Reached: r.RowWrites() <= maxTenWrites,
	}
}

func (n *Numbers) sinkWrites() Target {
	worst, where := 0.0, ""
	n.steady(func(key string, r Result) {
		if key != disorderName && r.SinkWrites() > worst {
			worst, where = r.SinkWrites(), key
		}
	})
	return Target{
		Measure: "sink writes a burst, no faults", Goal: "<= 1.01", Floor: "1",
		Figure: fmt.Sprintf("at most %.4f (%s)", worst, where), Reached: worst <= maxSinkWrites,
	}
}

func (n *Numbers) sinkWritesUnderFaults() Target {
	r := n.lull(faultsName)
	return Target{
		Measure: "sink writes a burst, standard faults", Goal: "<= 1.15", Floor: "1",
		Figure: fmt.Sprintf("%.4f", r.SinkWrites()), Reached: r.SinkWrites() <= maxSinkFaults,
	}
}

func (n *Numbers) late() Target {
	worst, where := time.Duration(0), ""
	n.steady(func(key string, r Result) {
		if late := r.Late(0.99); key != disorderName && late > worst {
			worst, where = late, key
		}
	})
	var windows []string
	for _, a := range n.Axes {
		for _, s := range a.Values {
			if strings.HasPrefix(a.Name, "batching window") {
				windows = append(windows, fmt.Sprintf("%s: %.2f s", s.Window,
					n.lull(axisKey(a, s)).Late(0.99).Seconds()))
			}
		}
	}
	return Target{
		Measure: "p99 freshness - quiet, no faults", Goal: "<= 1.3 s, whatever the window", Floor: "0.3 s",
		Figure:  fmt.Sprintf("at most %.2f s (%s); by window %s", worst.Seconds(), where, strings.Join(windows, ", ")),
		Reached: worst <= maxLate, Note: fmt.Sprintf(
			"up to a second of it is Step Functions' whole seconds; two pollers at 5,000 events/s have a backlog and "+
				"show %.2f s",
			n.lull(crowdedName).Late(0.99).Seconds()),
	}
}

func (n *Numbers) freshUnderFaults() Target {
	r := n.lull(faultsName)
	return Target{
		Measure: "p99 freshness under the standard fault mix", Goal: "<= 60 s",
		Figure: fmt.Sprintf("%.1f s (max %.1f s; %d of %s documents wrong in the end)",
			r.Fresh.At(0.99).Seconds(), r.Fresh.At(1).Seconds(), r.Wrong, thousands(r.Docs)),
		Reached: r.Fresh.At(0.99) <= maxFaultFreshness && r.Wrong == 0,
	}
}

func (n *Numbers) month() Target {
	r := n.lull(monthName)
	return Target{
		Measure: "dollars a month, 300,000 events a day in bursts of 3 (GOV.UK's peak), defaults, 5 pollers",
		Goal:    "<= 50",
		Figure:  fmt.Sprintf("%.0f", r.Month()), Reached: r.Month() <= maxMonth,
		Note: fmt.Sprintf(
			"%.1f messages a flight: each flight is an execution of %.1f s, a manifest written and %.1f times read; "+
				"see \"a month\" below for what would help",
			per(float64(r.Events), r.Counts.Starts), per(r.Counts.Flown.Seconds(), r.Counts.Starts),
			per(float64(r.Counts.Turns), r.Counts.Starts)),
	}
}

// own are the targets that this machine's own time decides.
func (n *Numbers) own() []Target {
	var list []Target
	if len(n.Pairs) > 0 {
		p, five := n.Pairs[0], n.Pairs[2]
		list = append(list, Target{
			Measure: "processor time an event against the idempotency loop, same run", Goal: "<= 0.3",
			Figure: fmt.Sprintf("%.2f (%s, A = %d)", p.Ratio(), p.Name, p.A), Reached: p.Ratio() <= maxRatio,
			Note: fmt.Sprintf(
				"%.2f for %s, A = %d: there the table is asked %.1f times an event against the loop's 2, and the "+
					"SDK's calls are nearly all of the time", five.Ratio(),
				five.Name, five.A, float64(five.A+2)/float64(five.Burst)),
		})
	}
	if n.Allocs.Handle > 0 {
		list = append(list, Target{
			Measure: "allocations a message, decode and collapse", Goal: "<= 8", Floor: "4",
			Figure: fmt.Sprintf("%.1f, judged and packed into the manifest too; %.1f more to read the SQS event",
				n.Allocs.Handle, n.Allocs.Read),
			Reached: n.Allocs.Handle <= maxAllocs,
		})
	}
	for _, i := range n.Intakes {
		list = append(list, Target{
			Measure: "embedded intake on this machine, sink " + i.Sink, Goal: ">= 20,000 events/s",
			Figure: thousands(int(i.PerSecond())) + " events/s", Reached: i.PerSecond() >= minIntake,
		})
	}
	few, many := n.lull(fewDocsName), n.lull(manyDocsName)
	change := many.Dollars()/few.Dollars() - 1
	list = append(list, Target{
		Measure: "10 times the documents", Goal: "cost an event unchanged within 5 %",
		Figure:  fmt.Sprintf("%+.1f %% (%s to %s documents)", 100*change, thousands(few.Docs), thousands(many.Docs)),
		Reached: math.Abs(change) <= maxDocsChange,
	})
	if len(n.Binaries) > 0 {
		var sizes []string
		reached := true
		for _, b := range n.Binaries {
			sizes = append(sizes, fmt.Sprintf("%s %.2f", b.Name, float64(b.Bytes)/1e6))
			reached = reached && b.Bytes <= maxBinary
		}
		list = append(list, Target{
			Measure: "start to first response, processor time; arm64 binary", Goal: "measured; <= 12 MB",
			Figure: fmt.Sprintf("%.1f ms, %.1f ms of processor time (receive, ten messages admitted and held); %s MB",
				n.Start.Wall.Seconds()*1e3, n.Start.CPU.Seconds()*1e3, strings.Join(sizes, ", ")), Reached: reached,
		})
	}
	return list
}
