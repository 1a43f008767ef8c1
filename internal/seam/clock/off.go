// SPDX-License-Identifier: Apache-2.0

package clock

import "time"

// Trust is the largest difference between two clocks at which lull still believes both. The time
// between the two readings does not count. Clocks of one cloud agree within milliseconds.
const Trust = 5 * time.Minute

// Off returns by how much the clock that showed now is wrong. happened is the time of an event by
// another clock, and the event was at most since ago. The result is positive if the clock is ahead,
// and negative if the clock is behind. It is 0 if the clocks differ by at most Trust, or if
// happened is zero.
func Off(now, happened time.Time, since time.Duration) time.Duration {
	switch d := now.Sub(happened); {
	case happened.IsZero():
		return 0
	case d < -Trust:
		return d
	case d > since+Trust:
		return d - since
	}
	return 0
}
