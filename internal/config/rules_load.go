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

// accountConcurrency is how many functions may run at once in an account, unless its quota was
// raised. It bounds a lane without a limit of its own.
const accountConcurrency = 1_000

// loadRules keep the expected traffic below the platform's quotas.
var loadRules = []Rule{
	{
		"in-flight", "Expected rate x (W + quiet + 3s) <= 80,000 per queue: a queue that holds more stops delivering.",
		checkInFlight,
	},
	{
		"live-concurrency", "queues.live.maxConcurrency is 0 or at least 2: the mapping takes no less.",
		checkLiveConcurrency,
	},
	{
		"flight-starts",
		"The flights of all queues start no faster than the quota of the flight kind: 6,000 a second for Express, " +
			"150 for Standard. Without queues.live.maxConcurrency 1,000 batches are gathered at once.",
		checkFlightStarts,
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
					math.Floor(float64(c.Queues.MaxInFlight)/hold.Seconds()), t.quiet(), l.both))
		}
	}
}

func checkLiveConcurrency(c *Config, f *checker) {
	if n := c.Queues.Live.MaxConcurrency; n > 0 && n < minConcurrency {
		f.fault("queues.live.maxConcurrency", n, "is less than a mapping takes", "write at least 2, or 0 for no limit")
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
	rate, sinks := float64(c.Queues.ExpectedRate), float64(len(c.Sinks))
	for _, l := range c.lanes() {
		if l.MaxConcurrency == 0 { // the lanes of all sinks share what the account has
			starts += l.starts(rate * sinks)
		} else {
			starts += sinks * l.starts(rate)
		}
	}
	limit := "lower "
	if c.Queues.Live.MaxConcurrency == 0 {
		limit = "set "
	}
	if starts > quota {
		f.fault("flight.kind", string(c.Flight.Kind),
			fmt.Sprintf("would start %.0f executions a second at the expected rate: the quota is %.0f",
				math.Ceil(starts), quota),
			"raise queues.live.batch and queues.live.window, or lower queues.expectedRate, or "+limit+
				"queues.live.maxConcurrency"+other)
	}
}

// starts returns how many flights a second a lane starts at a rate of messages.
func (l Lane) starts(rate float64) float64 {
	// Without a window, each message may be a batch of its own.
	if l.Window <= 0 || l.Batch <= 0 {
		return rate
	}
	byWindow := float64(l.Concurrency(accountConcurrency)) / l.Window.Seconds()
	return min(rate, max(byWindow, rate/float64(l.Batch)))
}
