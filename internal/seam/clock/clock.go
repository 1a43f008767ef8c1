// Package clock is the seam to time. Use cases never call time.Now: a skewed, a faster or a
// simulated clock must be able to stand in. A budget within one invocation is the difference of two
// calls of Now on one Clock. It survives a wall clock that jumps only if the Clock is monotonic, as
// System is.
package clock

import (
	"context"
	"time"
)

// Clock tells the time and waits. It is safe for concurrent use.
type Clock interface {
	// Now is the present time; differences of two calls are monotonic.
	Now() time.Time
	// Sleep waits for d or until ctx ends, and then returns its error. It returns at once for d <=
	// 0.
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

// Skewed is a clock that is off by a constant.
type Skewed struct {
	Clock
	By time.Duration
}

// Now is the other clock's time plus the skew.
func (s Skewed) Now() time.Time { return s.Clock.Now().Add(s.By) }
