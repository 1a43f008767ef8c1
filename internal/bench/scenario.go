package bench

import (
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/config"
)

// Scenario is one run's circumstances: what arrives and how the stack is set. The zero values of settings are lull's defaults.
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
	// The visibility that covers the common path, not a second more: it is what a lost invocation waits for.
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
