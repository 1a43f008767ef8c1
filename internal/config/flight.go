// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
)

// BreakEven is the wait from which an execution of one turn is cheaper as Standard than as Express.
// Standard costs $25 for a million transitions, and one turn has four transitions: Hold, Index,
// Remaining, Done. Express costs $1 for a million starts and $0.00001667 for a GB-second, in steps
// of 64 MB: $1.04 for a million executions of one second. (4 x 25 - 1) / 1.04 = 95 s. With further
// turns after the same wait, the break-even falls to 72 s. A test compares BreakEven with the price
// list (internal/simulation/price).
const BreakEven = 95 * time.Second

// KindFor is the kind of state machine for an execution that waits this long for its next turn.
func (f Flight) KindFor(wait time.Duration) FlightKind {
	switch {
	case f.Kind != FlightAuto:
		return f.Kind
	case wait >= BreakEven:
		return FlightStandard
	}
	return FlightExpress
}

// Extended is how long after its turn a message becomes visible again if receive extended its
// visibility. receive extends the visibility of a message that waits longer than the queue's
// visibility. The time is enough for that turn and the next one. It includes the rounding of the
// turn's time to whole seconds. It also includes a window, because a Standard execution waits for
// all messages that are due within one window.
func (i Index) Extended(window time.Duration) time.Duration {
	return wakeRounding + window + flight.TurnLate + 2*i.Timeout
}
