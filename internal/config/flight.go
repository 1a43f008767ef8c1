package config

import (
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
)

// BreakEven is the wait from which an execution of one turn is cheaper as Standard than as Express.
// Standard takes $25 a million transitions, and one turn has four: Hold, Index, Remaining, Done.
// Express takes $1 a million starts and $0.00001667 a GB-second, in steps of 64 MB: $1.04 a million
// for each second. (4 x 25 - 1) / 1.04 = 95 s. Each further turn after the same wait would move it
// down, to 72 s. A test compares it with the price list (internal/simulation/price).
const BreakEven = 95 * time.Second

// KindFor is the kind of state machine for an execution whose next turn comes after so long.
func (f Flight) KindFor(wait time.Duration) FlightKind {
	switch {
	case f.Kind != FlightAuto:
		return f.Kind
	case wait >= BreakEven:
		return FlightStandard
	}
	return FlightExpress
}

// Extended is how long after its turn a message becomes visible if receive extended its visibility.
// receive extends it if the message waits longer than the queue's visibility. The time covers that
// turn and the next one. The turn's time is rounded up to whole seconds, and a Standard execution
// waits for all messages due within a window.
func (c *Config) Extended(window time.Duration) time.Duration {
	return wakeRounding + window + flight.TurnLate + 2*c.Index.Timeout
}
