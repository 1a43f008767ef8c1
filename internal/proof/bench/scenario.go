package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/proof/plot"
)

// Scenario is one run's circumstances: what arrives and how the stack is set. The zero values of
// settings are lull's defaults.
type Scenario struct {
	Name    string
	Key     string // tells scenarios apart: the axis and the name, or the name where there is no axis
	Shape   Shape
	Batch   int
	Window  time.Duration
	Quiet   time.Duration
	Pollers int
	Leading bool
	Kind    config.FlightKind
	Faults  bool // the standard fault mix; only lull is run under it
}

// base is the scenario around which the others vary one thing each.
func base() Scenario {
	return Scenario{
		Shape: Shape{Rate: 500, Burst: 5, Spread: 2 * time.Second, For: 2 * time.Minute, Seed: 1},
		Batch: 1000, Window: 2 * time.Second, Quiet: 5 * time.Second, Pollers: 2,
	}
}

// sinkName is the only sink of a scenario.
const sinkName = "search"

// config is lull's configuration for the scenario; the peers take window, batch and quiet from it.
func (s Scenario) config(t testing.TB) *config.Config {
	c := config.Default()
	c.Sinks = map[string]config.Sink{sinkName: {Kind: "memory"}}
	c.Queues.ExpectedRate = max(c.Queues.ExpectedRate, int(s.Shape.Rate))
	c.Queues.Live.Batch, c.Queues.Live.Window, c.Debounce.Quiet = s.Batch, s.Window, s.Quiet
	// The visibility that covers the common path, not a second more: a lost invocation waits for it.
	c.Queues.Visibility = max(c.Queues.Visibility, 6*c.Receive.Timeout+s.Window,
		s.Window+c.Receive.Timeout+s.Quiet+time.Second+2*c.Index.Timeout)
	c.Debounce.Leading = s.Leading
	if s.Kind != "" {
		c.Flight.Kind = s.Kind
	}
	c.Complete()
	check(t, c.Validate())
	return &c
}

// Axis is one thing that varies while the rest stays as in the base scenario.
type Axis struct {
	Name   string // of the column heads
	Values []Scenario
}

// Names of scenarios that the targets and the page ask for.
const (
	baseName     = "base"
	oneOfTenName = "burst 10, one poller"
	hotName      = "one hot document"
	disorderName = "disorder"
	faultsName   = "standard faults"
	fewDocsName  = "2,000 documents"
	manyDocsName = "20,000 documents"
	monthName    = "a month at GOV.UK's peak"
	patientName  = "a month, window 5 s, quiet 8 s"
	standardName = "Standard flights"
	singlesName  = "single events"
	leadingName  = "single events, leading"
	crowdedName  = "5,000 events a second, two pollers"
)

func vary(name string, change func(s *Scenario)) Scenario {
	s := base()
	change(&s)
	s.Name, s.Key = name, name
	return s
}

// axis varies the base scenario. The value that changes nothing is the base scenario itself.
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

// Axes are what all contenders are compared over.
func Axes() []Axis {
	type load struct {
		rate, pollers int
		length        time.Duration
	}
	type times struct{ window, quiet time.Duration }
	return []Axis{
		axis("events a burst", []int{1, 3, 5, 10, 100}, plot.Thousands, func(s *Scenario, n int) { s.Shape.Burst = n }),
		axis("events a second", []load{
			{4, 2, time.Hour},
			{50, 2, 20 * time.Minute},
			{500, 2, 2 * time.Minute},
			{5000, 5, time.Minute}, // two pollers are at their limit: see crowdedName
		}, func(l load) string {
			if l.pollers == 5 {
				return plot.Thousands(l.rate) + " (five pollers)"
			}
			return plot.Thousands(l.rate)
		}, func(s *Scenario, l load) {
			s.Shape.Rate, s.Pollers, s.Shape.For = float64(l.rate), l.pollers, l.length
		}),
		axis("pollers", []int{1, 2, 5}, plot.Thousands, func(s *Scenario, n int) { s.Pollers = n }),
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

// varied are the scenarios of all axes, each once: the base scenario is on every axis.
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

// ownKeys are the scenarios for which the page shows lull's own figures.
func ownKeys() []string {
	return append(keys(varied()), oneOfTenName, crowdedName, standardName, fewDocsName, manyDocsName, disorderName,
		monthName, patientName, faultsName)
}

// Others are further scenarios that all contenders run.
func Others() []Scenario {
	return []Scenario{
		vary(hotName, func(s *Scenario) { s.Shape = Shape{Rate: 1000, Hot: true, For: time.Minute, Seed: 1} }),
		vary(disorderName, func(s *Scenario) { s.Shape.Disorder = true }),
		month(),
	}
}

// month is 300,000 events a day in bursts of 3 at an even rate, with lull's defaults and five
// pollers.
func month() Scenario {
	return vary(monthName, func(s *Scenario) {
		s.Pollers = 5
		s.Shape = Shape{Rate: 300_000.0 / 86_400, Burst: 3, Spread: 2 * time.Second, For: 2 * time.Hour, Seed: 1}
	})
}

// patient is the month of a user who can wait three seconds longer: larger batches, fewer flights.
func patient() Scenario {
	s := month()
	s.Name, s.Key, s.Window, s.Quiet = patientName, patientName, 5*time.Second, 8*time.Second
	return s
}

// Alone are the scenarios that only lull runs.
func Alone() []Scenario {
	return []Scenario{
		vary(oneOfTenName, func(s *Scenario) { s.Shape.Burst, s.Pollers = 10, 1 }),
		vary(faultsName, func(s *Scenario) { s.Faults, s.Shape.For = true, 6*time.Minute }),
		vary(fewDocsName, func(s *Scenario) { s.Shape.Docs, s.Shape.For = 2000, 8*time.Minute }),
		vary(manyDocsName, func(s *Scenario) { s.Shape.Docs, s.Shape.For = 20_000, 8*time.Minute }),
		vary(crowdedName, func(s *Scenario) { s.Shape.Rate, s.Shape.For = 5000, time.Minute }),
		patient(),
		vary(standardName, func(s *Scenario) { s.Kind = config.FlightStandard }),
		vary(singlesName, func(s *Scenario) { s.Shape.Burst, s.Shape.Rate, s.Shape.For = 1, 50, 10*time.Minute }),
		vary(leadingName, func(s *Scenario) {
			s.Shape.Burst, s.Shape.Rate, s.Shape.For, s.Leading = 1, 50, 10*time.Minute, true
		}),
	}
}
