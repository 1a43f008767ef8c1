// Package clock is the seam to time. Use cases never call time.Now: a skewed, a faster or a simulated clock must be able
// to stand in. Budgets within one invocation are differences of Now on one Clock and so survive a wall clock that jumps only if the
// Clock is monotonic, as System is.
package clock

import (
	"context"
	"math"
	"time"
)

// Clock tells the time and waits. It is safe for concurrent use.
type Clock interface {
	// Now is the present time; differences of two calls are monotonic.
	Now() time.Time
	// Sleep waits for d or until ctx ends, and then returns its error. It returns at once for d <= 0.
	Sleep(ctx context.Context, d time.Duration) error
	// Deadline returns a context that ends d from now, by this clock.
	Deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// System is the machine's clock.
type System struct{}

var (
	_ Clock = System{}
	_ Clock = (*Fast)(nil)
	_ Clock = Skewed{}
)

// Now is time.Now.
func (System) Now() time.Time { return time.Now() }

// Sleep waits on a timer.
func (System) Sleep(ctx context.Context, d time.Duration) error { return sleep(ctx, d) }

// Deadline is context.WithTimeout.
func (System) Deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Fast runs a number of times faster than the machine's clock from the moment it was made: waits are shorter, durations that it shows stay as they would be.
type Fast struct {
	speed  float64
	start  time.Time // what it shows at origin
	origin time.Time
}

// NewFast returns a clock that runs speed times faster. A speed that is not positive and finite counts as 1.
func NewFast(speed float64) *Fast {
	if !(speed > 0) || math.IsInf(speed, 1) {
		speed = 1
	}
	now := time.Now()
	return &Fast{speed: speed, start: now, origin: now}
}

// From makes the clock show at least t from now on: a clock that ran ahead in an earlier run must not go back.
func (f *Fast) From(t time.Time) *Fast {
	if t.After(f.start) {
		return &Fast{speed: f.speed, start: t, origin: f.origin}
	}
	return f
}

// Now is the start plus the elapsed time times the speed.
func (f *Fast) Now() time.Time {
	return f.start.Add(time.Duration(float64(time.Since(f.origin)) * f.speed))
}

// Sleep waits d divided by the speed.
func (f *Fast) Sleep(ctx context.Context, d time.Duration) error {
	return sleep(ctx, f.real(d))
}

// Deadline ends d of this clock's time from now.
func (f *Fast) Deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, f.real(d))
}

func (f *Fast) real(d time.Duration) time.Duration {
	if d <= 0 {
		return d
	}
	return max(time.Duration(float64(d)/f.speed), 1)
}

// Skewed is a clock that is off by a constant.
type Skewed struct {
	Clock
	By time.Duration
}

// Now is the other clock's time plus the skew.
func (s Skewed) Now() time.Time { return s.Clock.Now().Add(s.By) }
