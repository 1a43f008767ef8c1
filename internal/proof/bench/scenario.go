// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/simulation/plot"
)

// Scenario describes one run: which messages arrive, and how the stack is configured. A zero value
// means lull's default.
type Scenario struct {
	Name    string
	Key     string // unique key: the axis and the name, or only the name if the scenario has no axis
	Shape   Shape
	Batch   int
	Window  time.Duration
	Quiet   time.Duration
	Pollers int
	Leading bool
	Kind    config.FlightKind
	Faults  bool // whether the standard fault mix applies
}

// AWS chooses the number of pollers of a queue (docs.aws.amazon.com, "Configuring scaling behavior
// for SQS event source mappings"). AWS starts with five batches at a time, and adds up to 300 a
// minute while messages wait. When traffic is low, AWS returns to five, "and can optimize to as few
// as 2 concurrent batches". AWS does not reduce the pollers if the mapping has a maximum.
const (
	leastPollers = 2
	usualPollers = 5
	manyPollers  = 20
)

// base returns the base scenario: a stack with lull's defaults. Other scenarios differ from it in
// one setting each.
func base() Scenario {
	c := config.Default()
	return Scenario{
		Shape: Shape{Rate: 500, Burst: 5, Spread: 2 * time.Second, For: 2 * time.Minute, Seed: 1},
		Batch: c.Queues.Live.Batch, Window: c.Queues.Live.Window, Quiet: c.Debounce.Quiet, Pollers: usualPollers,
	}
}

// sinkName is the only sink of a scenario.
const sinkName = "search"

// config returns lull's configuration for the scenario. The peers use the window, the batch and the
// quiet time of this configuration.
func (s Scenario) config(t testing.TB) *config.Config {
	c := config.Default()
	c.Sinks = map[string]config.Sink{sinkName: {Kind: "memory"}}
	c.Queues.ExpectedRate = max(c.Queues.ExpectedRate, int(s.Shape.Rate))
	c.Queues.Live.Batch, c.Queues.Live.Window, c.Debounce.Quiet = s.Batch, s.Window, s.Quiet
	// The shortest visibility that covers the usual path. A lost invocation waits for its end.
	c.Queues.Visibility = max(c.Queues.Visibility, 6*c.Receive.Timeout+s.Window,
		s.Window+c.Receive.Timeout+s.Quiet+time.Second+2*c.Index.Timeout)
	c.Debounce.Leading = s.Leading
	if s.Kind != "" {
		c.Flight.Kind = s.Kind
		c.Queues.Live.MaxConcurrency = manyPollers // because Standard has a quota of starts
	}
	c.Complete()
	check(t, c.Validate())
	return &c
}

// Axis is one setting that varies while the other settings are those of the base scenario.
type Axis struct {
	Name   string // the name in the column heads
	Values []Scenario
}

// Names of scenarios that the targets and the page use.
const (
	baseName     = "base"
	twoName      = "pollers: 2"
	oneOfTenName = "burst 10, one poller"
	hotName      = "one hot document"
	disorderName = "disorder"
	faultsName   = "standard faults"
	fewDocsName  = "2,000 documents"
	manyDocsName = "20,000 documents"
	monthName    = "a month at GOV.UK's peak"
	monthTwoName = "a month, two pollers"
	patientName  = "a month, window 5 s, quiet 8 s"
	standardName = "Standard flights"
	singlesName  = "single events"
	leadingName  = "single events, leading"
	crowdedName  = "5,000 events a second, 2 pollers"
)

func vary(name string, change func(s *Scenario)) Scenario {
	s := base()
	change(&s)
	s.Name, s.Key = name, name
	return s
}

// axis returns variants of the base scenario, one for each value. If the base scenario already has
// the value, the variant is the base scenario itself.
func axis[T any](name string, values []T, label func(T) string, set func(s *Scenario, v T)) Axis {
	a := Axis{Name: name}
	for _, v := range values {
		s := base()
		if set(&s, v); s == base() {
			s.Key = baseName
		} else {
			s.Key = name + ": " + label(v)
		}
		s.Name = label(v)
		a.Values = append(a.Values, s)
	}
	return a
}

// Axes returns the axes along which the strongest contenders are compared.
func Axes() []Axis {
	type times struct{ window, quiet time.Duration }
	return []Axis{
		axis("events a burst", []int{1, 3, 5, 10, 100}, plot.Thousands, func(s *Scenario, n int) { s.Shape.Burst = n }),
		axis("events a second", rates, plot.Thousands, rate),
		axis("pollers", pollers, plot.Thousands, func(s *Scenario, n int) { s.Pollers = n }),
		axis("batching window (quiet)", []times{
			{time.Second, 5 * time.Second},
			{2 * time.Second, 5 * time.Second},
			{3 * time.Second, 5 * time.Second},
			{5 * time.Second, 8 * time.Second},
		}, func(t times) string { return fmt.Sprintf("%s (%s)", t.window, t.quiet) },
			func(s *Scenario, t times) { s.Window, s.Quiet = t.window, t.quiet }),
		axis("messages a batch", []int{100, 1000}, plot.Thousands, func(s *Scenario, n int) { s.Batch = n }),
	}
}

var (
	rates   = []int{4, 50, 500, 5000}
	pollers = []int{leastPollers, usualPollers, manyPollers}
)

// rate sets the number of events a second, and a run time that is long enough to see enough events.
func rate(s *Scenario, perSecond int) {
	s.Shape.Rate = float64(perSecond)
	s.Shape.For = map[int]time.Duration{4: time.Hour, 50: 20 * time.Minute, 500: 2 * time.Minute}[perSecond]
	s.Shape.For = max(s.Shape.For, time.Minute)
}

// Row is a row of a table of scenarios.
type Row struct {
	Name   string
	Values []Scenario
}

// Grid returns every rate combined with every number of pollers.
func Grid() (rows []Row) {
	known := varied()
	for _, r := range rates {
		row := Row{Name: plot.Thousands(r)}
		for _, n := range pollers {
			s := base()
			rate(&s, r)
			s.Pollers = n
			i := slices.IndexFunc(known, func(k Scenario) bool { return k.Shape == s.Shape && k.Pollers == n })
			if i >= 0 {
				s = known[i]
			} else {
				s.Key = fmt.Sprintf("%s events a second, %d pollers", plot.Thousands(r), n)
			}
			row.Values = append(row.Values, s)
		}
		rows = append(rows, row)
	}
	return rows
}

// varied returns the scenarios of all axes, each once. The base scenario is on every axis.
func varied() (list []Scenario) {
	for _, a := range Axes() {
		for _, s := range a.Values {
			if !slices.Contains(keys(list), s.Key) {
				list = append(list, s)
			}
		}
	}
	return list
}

func keys(list []Scenario) (out []string) {
	for _, s := range list {
		out = append(out, s.Key)
	}
	return out
}

// Others returns further scenarios that all contenders run.
func Others() []Scenario {
	return []Scenario{
		vary(hotName, func(s *Scenario) { s.Shape = Shape{Rate: 1000, Hot: true, For: time.Minute, Seed: 1} }),
		vary(disorderName, func(s *Scenario) { s.Shape.Disorder = true }),
		month(),
	}
}

// trials returns the scenarios of the trials, which all contenders run.
func trials() (list []Scenario) {
	for _, t := range Trials() {
		list = append(list, t.Scenario())
	}
	return list
}

// month returns a scenario with 300,000 events a day in bursts of 3 at an even rate, with lull's
// defaults.
func month() Scenario {
	return vary(monthName, func(s *Scenario) {
		s.Shape = Shape{Rate: 300_000.0 / 86_400, Burst: 3, Spread: 2 * time.Second, For: 2 * time.Hour, Seed: 1}
	})
}

// patient returns the month of a user who can wait three seconds longer. Batches are larger, and
// there are fewer flights.
func patient() Scenario {
	s := month()
	s.Name, s.Key, s.Window, s.Quiet = patientName, patientName, 5*time.Second, 8*time.Second
	return s
}

// thrifty returns the month with the fewest pollers that AWS may use.
func thrifty() Scenario {
	s := month()
	s.Name, s.Key, s.Pollers = monthTwoName, monthTwoName, leastPollers
	return s
}

// Alone returns the scenarios that only lull runs.
func Alone() []Scenario {
	list := []Scenario{
		vary(oneOfTenName, func(s *Scenario) { s.Shape.Burst, s.Pollers = 10, 1 }),
		vary(faultsName, func(s *Scenario) { s.Faults, s.Shape.For = true, 6*time.Minute }),
		vary(fewDocsName, func(s *Scenario) { s.Shape.Docs, s.Shape.For = 2000, 8*time.Minute }),
		vary(manyDocsName, func(s *Scenario) { s.Shape.Docs, s.Shape.For = 20_000, 8*time.Minute }),
		thrifty(),
		patient(),
		vary(standardName, func(s *Scenario) { s.Kind = config.FlightStandard }),
		vary(singlesName, func(s *Scenario) { s.Shape.Burst, s.Shape.Rate, s.Shape.For = 1, 50, 10*time.Minute }),
		vary(leadingName, func(s *Scenario) {
			s.Shape.Burst, s.Shape.Rate, s.Shape.For, s.Leading = 1, 50, 10*time.Minute, true
		}),
	}
	all := keys(varied())
	for _, r := range Grid() {
		for _, s := range r.Values {
			if !slices.Contains(all, s.Key) {
				list = append(list, s)
			}
		}
	}
	return list
}
