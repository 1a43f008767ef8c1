package clock

import "time"

// Trust is how far two clocks may differ, apart from the time between two readings, and still be
// believed. Clocks of one cloud agree within milliseconds.
const Trust = 5 * time.Minute

// Off returns by how much the clock that showed now is wrong. Another clock showed happened at an
// event that was at most since ago. The result is positive if the clock is ahead and negative if it
// is behind. It is 0 within Trust, or if happened is zero.
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
