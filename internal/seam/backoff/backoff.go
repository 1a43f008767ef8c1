// SPDX-License-Identifier: Apache-2.0

// Package backoff repeats failed calls with growing random waits. It is lull's only layer of
// retries: the clients below it do not retry.
package backoff

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
)

// Policy bounds the waits and the number of tries.
type Policy struct {
	Min, Max time.Duration
	Tries    int            // calls in all, at least one
	Jitter   func() float64 // in [0, 1); nil for math/rand
}

// Row is the policy for single calls to the table, S3 and Step Functions inside an invocation.
func Row() Policy { return Policy{Min: 50 * time.Millisecond, Max: 800 * time.Millisecond, Tries: 4} }

// Delay returns the wait before try n+1: a random part of min(Max, Min x 2^n). The wait is random
// so that many callers do not try at the same moment. A negative n counts as 0.
func (p Policy) Delay(n int) time.Duration {
	d := p.Max
	if n = max(n, 0); n < 32 && p.Min<<n > 0 && p.Min<<n < p.Max {
		d = p.Min << n
	}
	j := rand.Float64
	if p.Jitter != nil {
		j = p.Jitter
	}
	return time.Duration(j() * float64(d))
}

// Do calls f until f succeeds, the error of f is final, the tries are used up or ctx ends. Do
// returns the last error. A refused condition is final. It must be safe to repeat f after an
// unknown outcome, as it is for conditional writes with a token.
func (p Policy) Do(ctx context.Context, c clock.Clock, f func() error) error {
	for n := 0; ; n++ {
		err := f()
		if err == nil || n+1 >= p.Tries || Final(err) {
			return err
		}
		if slept := c.Sleep(ctx, p.WithClock(c).Delay(n)); slept != nil {
			return err
		}
	}
}

// Get calls f as Do does, for an f that has a result.
func Get[T any](ctx context.Context, c clock.Clock, f func() (T, error)) (out T, err error) {
	err = Row().Do(ctx, c, func() (err error) {
		out, err = f()
		return err
	})
	return out, err
}

// Do calls f under the policy Row, as [Policy.Do] does.
func Do(ctx context.Context, c clock.Clock, f func() error) error { return Row().Do(ctx, c, f) }

// WithClock takes the jitter from the clock, if the policy has none and the clock can draw one. A
// simulated clock can, so that the simulation's seed decides every wait.
func (p Policy) WithClock(c clock.Clock) Policy {
	if draws, ok := c.(interface{ Jitter() float64 }); ok && p.Jitter == nil {
		p.Jitter = draws.Jitter
	}
	return p
}

// Final reports whether repeating the call cannot help.
func Final(err error) bool {
	if _, refused := shard.AsRefused(err); refused {
		return true
	}
	var p permanent
	return errors.As(err, &p) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Class says in a word or two why a call failed. Notes use the class, because the error's own text
// may quote the request.
func Class(err error) string {
	var coded interface{ ErrorCode() string } // an error of an AWS service
	var timed interface{ Timeout() bool }
	switch {
	case errors.As(err, &coded):
		return coded.ErrorCode()
	case errors.Is(err, shard.ErrThrottled):
		return "throttled"
	case errors.As(err, &timed) && timed.Timeout():
		return "no answer in time"
	case Final(err):
		return "refused for good"
	}
	return "no answer"
}

// permanent marks an error as final.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent marks an error that another try cannot fix, such as a missing table or a denied
// permission.
func Permanent(err error) error { return permanent{err} }
