// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
)

func TestWorkIsNotFasterOnAFastClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewFast(60)
		shown := c.Now()
		passed := func(want time.Duration) {
			t.Helper()
			if got := c.Now().Sub(shown); got != want {
				t.Errorf("%s have passed, want %s", got, want)
			}
			shown = c.Now()
		}
		time.Sleep(time.Second)
		passed(time.Minute)
		one, two := clock.Working(c), clock.Working(c)
		time.Sleep(time.Second)
		passed(time.Second)
		one()
		time.Sleep(time.Second)
		passed(time.Second)
		two()
		time.Sleep(time.Second)
		passed(time.Minute)
	})
}

func TestAWaitIsNotFasterWhileACallerWorks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewFast(10)
		begin, shown := time.Now(), c.Now()
		slept := make(chan error)
		go func() { slept <- c.Sleep(t.Context(), 30*time.Second) }()
		synctest.Wait()
		done := clock.Working(c)
		time.Sleep(10 * time.Second)
		done()
		if err := <-slept; err != nil {
			t.Fatal(err)
		}
		if got, want := time.Since(begin), 12*time.Second; got != want {
			t.Errorf("took %s, want %s: ten seconds of work, then waiting at ten times the speed", got, want)
		}
		if got, want := c.Now().Sub(shown), 30*time.Second; got != want {
			t.Errorf("the clock moved by %s, want %s", got, want)
		}
	})
}

func TestAllWakeInTheOrderOfTheirTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewFast(1000)
		start := c.Now()
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 100 {
			d := time.Duration((i*37)%100+1) * time.Second
			wg.Go(func() {
				if err := c.Sleep(t.Context(), d); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if got := c.Now().Sub(start); got != d {
					t.Errorf("woke at %s, want %s", got, d)
				}
			})
		}
		wg.Wait()
	})
}

func TestADeadlineThatHasComeKeepsTheClockSlowUntilItIsSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewFast(100)
		ctx, cancel := c.Deadline(t.Context(), 10*time.Second)
		defer cancel()
		child, stop := context.WithCancel(ctx)
		defer stop()
		<-child.Done()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(child.Err(), context.DeadlineExceeded) {
			t.Errorf("ended with %v, its child with %v", ctx.Err(), child.Err())
		}
		shown := c.Now()
		time.Sleep(time.Second)
		if got := c.Now().Sub(shown); got != time.Second {
			t.Errorf("%s have passed, want a second, because the woken caller has not run yet", got)
		}
		cancel()
		cancel()
		shown = c.Now()
		time.Sleep(time.Second)
		if got := c.Now().Sub(shown); got != 100*time.Second {
			t.Errorf("%s have passed, want 100 seconds", got)
		}
	})
}

func TestADeadlineEndsWithItsParentAndWhenCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewFast(100)
		parent, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		ctx, cancel := c.Deadline(parent, time.Hour)
		defer cancel()
		if at, ok := ctx.Deadline(); !ok || time.Until(at) != time.Second {
			t.Errorf("deadline %s, %t; want the earlier deadline of the parent", at, ok)
		}
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("ended with %v", ctx.Err())
		}
		other, cancelled := c.Deadline(t.Context(), time.Hour)
		cancelled()
		<-other.Done()
		if !errors.Is(other.Err(), context.Canceled) {
			t.Errorf("ended with %v", other.Err())
		}
	})
}

func TestAClockThatRanAheadDoesNotGoBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ahead := time.Now().Add(time.Hour)
		if got := clock.NewFast(5).From(ahead).Now(); !got.Equal(ahead) {
			t.Errorf("shows %s, want %s", got, ahead)
		}
		now := time.Now()
		if got := clock.NewFast(5).From(now.Add(-time.Hour)).Now(); !got.Equal(now) {
			t.Errorf("shows %s, want %s", got, now)
		}
	})
}

func TestWorkingChangesNoOtherClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		done := clock.Working(clock.System{})
		shown := clock.System{}.Now()
		time.Sleep(time.Second)
		done()
		if got := (clock.System{}).Now().Sub(shown); got != time.Second {
			t.Errorf("%s have passed, want a second", got)
		}
	})
}

func TestAFastClockIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	c := clock.NewFast(1e5)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			last := c.Now()
			for n := range 200 {
				done := clock.Working(c)
				ctx, cancel := c.Deadline(t.Context(), time.Duration(n%7)*time.Millisecond)
				done()
				if i%2 == 0 {
					_ = c.Sleep(ctx, time.Duration(n%5)*time.Millisecond) // the sleep ends, or the context does
				} else {
					cancel()
				}
				cancel()
				now := c.Now()
				if now.Before(last) {
					t.Errorf("the clock went back by %s", last.Sub(now))
				}
				last = now
			}
		})
	}
	wg.Wait()
}
