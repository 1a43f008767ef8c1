// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
)

// drawing is a clock that also draws the jitter, as the simulator's clock does.
type drawing struct {
	clock.System
	jitter float64
}

func (d drawing) Jitter() float64 { return d.jitter }

func TestWaitsTakeTheJitterOfAClockThatDrawsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		policy Policy
		want   time.Duration
	}{
		{"the clock's", Row(), 25*time.Millisecond + 50*time.Millisecond + 100*time.Millisecond},
		{"the policy's own jitter", Policy{
			Min: time.Second, Max: time.Second, Tries: 2,
			Jitter: func() float64 { return 0.25 },
		}, 250 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				failing := errors.New("no answer")
				if err := c.policy.Do(t.Context(), drawing{jitter: 0.5},
					func() error { return failing }); !errors.Is(err, failing) {
					t.Errorf("error %v, want the last error", err)
				}
				if got := time.Since(began); got != c.want {
					t.Errorf("waited %s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestAFinalErrorIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, final := range []error{Permanent(errors.New("no such table")), context.DeadlineExceeded, context.Canceled} {
		calls := 0
		err := Row().Do(t.Context(), drawing{}, func() error { calls++; return final })
		if calls != 1 || !errors.Is(err, final) {
			t.Errorf("%v: %d calls, error %v, want one call and the error", final, calls, err)
		}
	}
}

func TestGetReturnsTheResultOfTheTryThatSucceeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		got, err := Get(t.Context(), drawing{jitter: 0.5}, func() (int, error) {
			if calls++; calls < 3 {
				return 0, errors.New("no answer")
			}
			return calls, nil
		})
		if got != 3 || err != nil {
			t.Errorf("got %d, %v, want the third call's result", got, err)
		}
	})
}

func TestDelayGrowsFromMinToMaxForAnyNumber(t *testing.T) {
	t.Parallel()
	p := Policy{Min: time.Second, Max: 10 * time.Second, Jitter: func() float64 { return 1 }}
	for n, want := range map[int]time.Duration{
		-7: time.Second, 0: time.Second, 1: 2 * time.Second, 3: 8 * time.Second,
		4: 10 * time.Second, 31: 10 * time.Second, 32: 10 * time.Second, 1000: 10 * time.Second,
	} {
		if got := p.Delay(n); got != want {
			t.Errorf("delay %d: %s, want %s", n, got, want)
		}
	}
}
