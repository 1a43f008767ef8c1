package config

import (
	"fmt"
	"math"
	"time"
)

// holdSlack is how long a message is held beside its window and its quiet time.
const holdSlack = 3 * time.Second

// Executions that may be started a second and account, sustained: the quotas of Step Functions.
// Standard's is the one of the smaller regions.
const (
	expressStarts  = 6_000
	standardStarts = 150
)

// loadRules keep the expected traffic below the platform's quotas.
var loadRules = []Rule{
	{
		"in-flight", "Expected rate x (W + quiet + 3s) <= 80,000 per queue: a queue that holds more stops delivering.",
		checkInFlight,
	},
	{
		"flight-starts",
		"The flights of all queues start no faster than the quota of the flight kind: 6,000 a second for Express, " +
			"150 for Standard.", checkFlightStarts,
	},
}

// checkInFlight multiplies the rate by the time for which each message is held. The default limit
// of 80,000 leaves a third of the quota of SQS, 120,000, free.
func checkInFlight(c *Config, f *checker) {
	l := c.slowest()
	for _, t := range c.timings() {
		hold := l.Window + t.Quiet + holdSlack
		if held := float64(c.Queues.ExpectedRate) * hold.Seconds(); held > float64(c.Queues.MaxInFlight) {
			f.fault("queues.expectedRate", c.Queues.ExpectedRate,
				fmt.Sprintf("x (%s.window + %s + 3s) = %.0f held messages is more than the queues.maxInFlight of %d",
					l.path, t.quiet(), math.Ceil(held), c.Queues.MaxInFlight),
				fmt.Sprintf(
					"spread the collections over more sinks so that it is at most %.0f per queue, lower %s or "+
						"%s.window, or have the quota raised and raise queues.maxInFlight with it",
					math.Floor(float64(c.Queues.MaxInFlight)/hold.Seconds()), t.quiet(), l.path))
		}
	}
}

// checkFlightStarts counts one flight per batch. A batch is closed by its size or its window,
// whichever comes first. So there are never more batches than messages, and never fewer than either
// of the two makes.
func checkFlightStarts(c *Config, f *checker) {
	quota, other := float64(expressStarts), ""
	if c.Flight.Kind == FlightStandard {
		quota, other = standardStarts, ", or set flight.kind to express"
	}
	var starts float64
	for _, l := range c.lanes() {
		starts += l.starts(float64(c.Queues.ExpectedRate))
	}
	starts *= float64(len(c.Sinks))
	if starts > quota {
		f.fault("flight.kind", string(c.Flight.Kind),
			fmt.Sprintf("would start %.0f executions a second at the expected rate: the quota is %.0f",
				math.Ceil(starts), quota),
			"raise queues.live.batch and queues.live.window, or lower queues.expectedRate or queues.live.maxConcurrency"+other)
	}
}

// starts returns how many flights a second a lane starts at a rate of messages.
func (l Lane) starts(rate float64) float64 {
	// Without a window, each message may be a batch of its own.
	if l.Window <= 0 || l.Batch <= 0 {
		return rate
	}
	byWindow := float64(l.MaxConcurrency) / l.Window.Seconds()
	return min(rate, max(byWindow, rate/float64(l.Batch)))
}
