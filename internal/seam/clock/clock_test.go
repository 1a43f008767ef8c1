// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/seam/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clocks runs a test on every clock. speed is the factor by which the clock is faster than the
// clock of the bubble.
func clocks(t *testing.T, test func(t *testing.T, c clock.Clock, speed float64)) {
	t.Helper()
	for name, open := range map[string]func() (clock.Clock, float64){
		"system":             func() (clock.Clock, float64) { return clock.System{}, 1 },
		"sixty times faster": func() (clock.Clock, float64) { return clock.NewFast(60), 60 },
		"at half speed":      func() (clock.Clock, float64) { return clock.NewFast(0.5), 0.5 },
		"skewed": func() (clock.Clock,
			float64,
		) {
			return clock.Skewed{Clock: clock.System{}, By: -time.Hour}, 1
		},
		"skewed and faster": func() (clock.Clock,
			float64,
		) {
			return clock.Skewed{Clock: clock.NewFast(10), By: time.Hour}, 10
		},
		"of an invalid speed": func() (clock.Clock, float64) { return clock.NewFast(-1), 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, speed := open()
				test(t, c, speed)
			})
		})
	}
}

func TestSleepPassesTheTimeThatTheClockShows(t *testing.T) {
	t.Parallel()
	clocks(t, func(t *testing.T, c clock.Clock, speed float64) {
		begin, shown := time.Now(), c.Now()
		if err := c.Sleep(t.Context(), 30*time.Second); err != nil {
			t.Fatal(err)
		}
		if got, want := time.Since(begin), time.Duration(float64(30*time.Second)/speed); got != want {
			t.Errorf("slept %s, want %s", got, want)
		}
		if got, want := c.Now().Sub(shown), 30*time.Second; got != want {
			t.Errorf("the clock moved by %s, want %s", got, want)
		}
	})
}

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	clocks(t, func(t *testing.T, c clock.Clock, _ float64) {
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		go func() {
			time.Sleep(time.Second)
			cancel(stopped)
		}()
		begin := time.Now()
		if err := c.Sleep(ctx, 1000*time.Hour); !errors.Is(err, stopped) {
			t.Errorf("sleep: %v, want the context's cause", err)
		}
		if got, want := time.Since(begin), time.Second; got != want {
			t.Errorf("slept %s, want %s", got, want)
		}
		if err := c.Sleep(ctx, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("sleep of nothing: %v, want the context's error", err)
		}
	})
}

func TestSleepOfNothingReturnsAtOnce(t *testing.T) {
	t.Parallel()
	clocks(t, func(t *testing.T, c clock.Clock, _ float64) {
		begin := time.Now()
		for _, d := range []time.Duration{0, -1, -time.Hour} {
			if err := c.Sleep(t.Context(), d); err != nil {
				t.Errorf("sleep %s: %v", d, err)
			}
		}
		if got := time.Since(begin); got != 0 {
			t.Errorf("slept %s", got)
		}
	})
}

func TestADeadlineComesByItsClock(t *testing.T) {
	t.Parallel()
	clocks(t, func(t *testing.T, c clock.Clock, speed float64) {
		shown := c.Now()
		ctx, cancel := c.Deadline(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		<-ctx.Done()
		if got, want := time.Since(begin), time.Duration(float64(time.Minute)/speed); got != want {
			t.Errorf("ended after %s, want %s", got, want)
		}
		if got, want := c.Now().Sub(shown), time.Minute; got != want {
			t.Errorf("ended after %s by its clock, want %s", got, want)
		}
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("ended with %v", ctx.Err())
		}
		past, cancel := c.Deadline(t.Context(), -time.Second)
		defer cancel()
		if past.Err() == nil {
			t.Error("a deadline that has passed has not ended its context")
		}
	})
}

func TestASkewedClockIsOffByAConstant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clock.Skewed{Clock: clock.System{}, By: -500 * time.Millisecond}
		for range 3 {
			if got, want := time.Since(c.Now()), 500*time.Millisecond; got != want {
				t.Errorf("off by %s, want %s", got, want)
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestASpeedThatIsNotASpeedCountsAsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, speed := range []float64{0, -3, math.NaN(), math.Inf(1), math.Inf(-1)} {
			c := clock.NewFast(speed)
			begin, shown := time.Now(), c.Now()
			if err := c.Sleep(t.Context(), time.Second); err != nil {
				t.Fatal(err)
			}
			if time.Since(begin) != time.Second || c.Now().Sub(shown) != time.Second {
				t.Errorf("speed %v: slept %s, the clock moved by %s, want a second", speed, time.Since(begin),
					c.Now().Sub(shown))
			}
		}
	})
}

func TestTheShortestSleepIsNotABusyLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewFast(1e6)
		begin := time.Now()
		if err := c.Sleep(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if time.Since(begin) <= 0 {
			t.Error("a nanosecond took no time at all")
		}
	})
}
