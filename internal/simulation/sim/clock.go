// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/clock"
)

// epoch is the time at which every simulation begins.
var epoch = time.Date(2026, time.January, 5, 8, 0, 0, 0, time.UTC)

// trueClock is the clock of the simulated services. trueClock is always right. Its Sleep does not
// wait, because no invocation sleeps with this clock.
type trueClock struct{ s *scheduler }

var (
	_ clock.Clock = trueClock{}
	_ clock.Clock = (*skewed)(nil)
)

func (c trueClock) Now() time.Time { return epoch.Add(c.s.now) }

// Sleep returns at once. The in-memory stores call it, and they have no latency in a simulation.
func (c trueClock) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func (c trueClock) Deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return limit(ctx, c.s, c.s.now+d)
}

// skewed is the clock of one invocation. The clock of an invocation is wrong by a constant. The
// next invocation may have another constant, so all invocations together see a clock that jumps.
type skewed struct {
	inv *invocation
	by  time.Duration
}

func (c *skewed) Now() time.Time { return epoch.Add(c.inv.w.now + c.by) }

// Sleep parks the running coroutine.
func (c *skewed) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	return c.inv.await(ctx, c.inv.w.now+d)
}

func (c *skewed) Deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return limit(ctx, &c.inv.w.scheduler, c.inv.w.now+d)
}

// Jitter returns the random number for package backoff.
func (c *skewed) Jitter() float64 { return c.inv.w.dice.Float64() }

// limited is a context that ends at a moment of virtual time. The Done channel of a limited context
// is nil, so a caller can wait only by parking.
type limited struct {
	context.Context
	s        *scheduler
	at       time.Duration
	canceled bool
}

func limit(ctx context.Context, s *scheduler, at time.Duration) (context.Context, context.CancelFunc) {
	c := &limited{Context: ctx, s: s, at: at}
	return c, func() { c.canceled = true }
}

// Deadline returns the context's deadline, or its parent's if that is earlier.
func (c *limited) Deadline() (time.Time, bool) {
	at := epoch.Add(c.at)
	if parent, ok := c.Context.Deadline(); ok && parent.Before(at) {
		return parent, true
	}
	return at, true
}

func (c *limited) Err() error {
	switch {
	case c.canceled:
		return context.Canceled
	case c.s.now >= c.at:
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}

// await parks the running coroutine until a moment, or until ctx ends. await returns an error if
// the invocation was killed, or if ctx ended first.
func (v *invocation) await(ctx context.Context, until time.Duration) error {
	if v.Killed() {
		return fault.ErrKilled
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	end, limited := ctx.Deadline()
	early := limited && end.Sub(epoch) < until
	if early {
		until = end.Sub(epoch)
	}
	v.w.waitUntil(until)
	switch {
	case v.Killed():
		return fault.ErrKilled
	case early:
		return context.DeadlineExceeded
	}
	return nil
}

// Begin returns the time at which every simulation begins.
func Begin() time.Time { return epoch }
