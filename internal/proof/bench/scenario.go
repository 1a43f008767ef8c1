package bench

import (
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/config"
)

// Scenario is one run's circumstances: what arrives and how the stack is set. The zero values of
// settings are lull's defaults.
type Scenario struct {
	Name    string
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
		Name:  "base",
		Shape: Shape{Rate: 500, Burst: 5, Spread: 2 * time.Second, For: 2 * time.Minute, Seed: 1},
		Batch: 1000, Window: 2 * time.Second, Quiet: 5 * time.Second, Pollers: 2,
	}
}

// sinkName is the only sink of a scenario.
const sinkName = "search"

// config is lull's configuration for the scenario; the peers take window, batch and quiet from it.
func (s Scenario) config() (*config.Config, error) {
	c := config.Default()
	c.Sinks = map[string]config.Sink{sinkName: {Kind: config.SinkMemory}}
	c.Queues.ExpectedRate = max(c.Queues.ExpectedRate, int(s.Shape.Rate))
	c.Queues.Live.MaxConcurrency = max(c.Queues.Live.MaxConcurrency, s.Pollers)
	c.Queues.Live.Batch, c.Queues.Live.Window, c.Debounce.Quiet = s.Batch, s.Window, s.Quiet
	// The visibility that covers the common path, not a second more: it is what a lost invocation
	// waits for.
	c.Queues.Visibility = max(c.Queues.Visibility, 6*c.Receive.Timeout+s.Window,
		s.Window+c.Receive.Timeout+s.Quiet+time.Second+2*c.Index.Timeout)
	c.Debounce.Leading = s.Leading
	if s.Kind != "" {
		c.Flight.Kind = s.Kind
	}
	c.Complete()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return &c, nil
}

// Axis is one thing that varies while the rest stays as in the base scenario.
type Axis struct {
	Name   string // of the column heads
	Values []Scenario
}

// Names of scenarios that the targets ask for.
const (
	baseName      = "base"
	oneOfTenName  = "burst 10, one poller"
	hotName       = "one hot document"
	disorderName  = "disorder"
	faultsName    = "standard faults"
	fewDocsName   = "2,000 documents"
	manyDocsName  = "20,000 documents"
	monthName     = "a month at GOV.UK's peak"
	patientName   = "a month, window 5 s, quiet 8 s"
	standardName  = "Standard flights"
	singlesName   = "single events"
	leadingName   = "single events, leading"
	crowdedName   = "5,000 events a second, two pollers"
	disorderAbout = "the base trace, with 2 % of the events sent twice and 5 % late by up to 5 s"
)

func vary(name string, change func(s *Scenario)) Scenario {
	s := base()
	s.Name = name
	change(&s)
	return s
}

// Axes are what all contenders are compared over.
func Axes() []Axis {
	var bursts, rates, pollers, windows, batches Axis
	bursts.Name = "events a burst"
	for _, n := range []int{1, 3, 5, 10, 100} {
		bursts.Values = append(bursts.Values, vary(fmt.Sprint(n), func(s *Scenario) { s.Shape.Burst = n }))
	}
	rates.Name = "events a second"
	for _, r := range []struct {
		name string
		rate float64
		d    time.Duration
	}{
		{"4", 4, time.Hour},
		{"50", 50, 20 * time.Minute},
		{"500", 500, 2 * time.Minute},
		{"5,000 (five pollers)", 5000, time.Minute},
	} {
		rates.Values = append(rates.Values, vary(r.name, func(s *Scenario) {
			s.Shape.Rate, s.Shape.For = r.rate, r.d
			if r.rate > 2000 {
				s.Pollers = 5 // two are at their limit: see crowded
			}
		}))
	}
	pollers.Name = "pollers"
	for _, n := range []int{1, 2, 5} {
		pollers.Values = append(pollers.Values, vary(fmt.Sprint(n), func(s *Scenario) { s.Pollers = n }))
	}
	windows.Name = "batching window (quiet)"
	for _, w := range []struct{ window, quiet time.Duration }{
		{time.Second, 5 * time.Second},
		{2 * time.Second, 5 * time.Second},
		{3 * time.Second, 5 * time.Second},
		{5 * time.Second, 8 * time.Second},
	} {
		windows.Values = append(windows.Values, vary(fmt.Sprintf("%s (%s)", w.window, w.quiet),
			func(s *Scenario) { s.Window, s.Quiet = w.window, w.quiet }))
	}
	batches.Name = "messages a batch"
	for _, n := range []int{100, 1000} {
		batches.Values = append(batches.Values, vary(thousands(n), func(s *Scenario) { s.Batch = n }))
	}
	return []Axis{bursts, rates, pollers, windows, batches}
}

// Others are the scenarios that stand alone, with who runs them.
func Others() []Scenario {
	return []Scenario{
		vary(hotName, func(s *Scenario) { s.Shape = Shape{Rate: 1000, Hot: true, For: time.Minute, Seed: 1} }),
		vary(disorderName, func(s *Scenario) { s.Shape.Disorder = true }),
		month(),
	}
}

// month is 300,000 events a day in bursts of 3, with lull's defaults, five pollers and an even
// rate.
func month() Scenario {
	return vary(monthName, func(s *Scenario) {
		s.Pollers = 5
		s.Shape = Shape{Rate: 300_000.0 / 86_400, Burst: 3, Spread: 2 * time.Second, For: 2 * time.Hour, Seed: 1}
	})
}

// patient is the month of somebody who can wait three seconds longer: larger batches, fewer
// flights.
func patient() Scenario {
	s := month()
	s.Name, s.Window, s.Quiet = patientName, 5*time.Second, 8*time.Second
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

// thousands writes a number with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
