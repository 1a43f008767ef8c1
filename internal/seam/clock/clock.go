// SPDX-License-Identifier: Apache-2.0

// Package clock is the interface to time. lull's functions never call time.Now, so that tests and
// the simulator can use a skewed, a faster or a simulated clock. A time limit within one invocation
// is the difference of two calls of Now on one Clock. If the wall clock jumps, the difference stays
// right only if the Clock is monotonic. System is monotonic.
package clock

import (
	"context"
	"time"
)

// Clock returns the time and waits. It is safe for concurrent use.
type Clock interface {
	// Now returns the present time. The difference of two calls is monotonic.
	Now() time.Time
	// Sleep waits for d. If ctx ends before, Sleep returns the error of ctx. If d <= 0, Sleep
	// returns at once.
	Sleep(ctx context.Context, d time.Duration) error
	// Deadline returns a context that ends d from now, by this clock.
	Deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// System is the clock of the machine.
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

// Skewed is a clock that differs from another clock by a constant.
type Skewed struct {
	Clock
	By time.Duration
}

// Now is the other clock's time plus the skew.
func (s Skewed) Now() time.Time { return s.Clock.Now().Add(s.By) }
