package clock

import "time"

// Trust is how far a clock may be from another one, beyond what passed since that one was read, and
// still be believed. Clocks of one cloud agree within milliseconds.
const Trust = 5 * time.Minute

// Off says by how much now cannot be right: something happened at the given time, by a clock that
// is not ours, and at most since ago. It is positive for a clock that is ahead, negative for one
// that is behind, and 0 within Trust or where the time is zero.
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
