package sim

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/local/fault"
)

// epoch is when every simulation begins.
var epoch = time.Date(2026, time.January, 5, 8, 0, 0, 0, time.UTC)

// trueClock is the services' own clock. It is never off and nobody sleeps by it.
type trueClock struct{ s *scheduler }

var (
	_ clock.Clock = trueClock{}
	_ clock.Clock = (*skewed)(nil)
)

func (c trueClock) Now() time.Time { return epoch.Add(c.s.now) }

// Sleep is for the halves in memory, whose latency is none here.
func (c trueClock) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func (c trueClock) Deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return limit(ctx, c.s, c.s.now+d)
}

// skewed is the clock of one invocation: off by a constant. The next invocation's may be off by
// another, so that what a fleet of them sees is a clock that steps.
type skewed struct {
	inv *invocation
	by  time.Duration
}

func (c *skewed) Now() time.Time { return epoch.Add(c.inv.w.now + c.by) }

// Sleep parks the coroutine.
func (c *skewed) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	return c.inv.await(ctx, c.inv.w.now+d)
}

func (c *skewed) Deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return limit(ctx, &c.inv.w.scheduler, c.inv.w.now+d)
}

// Jitter gives package backoff its jitter.
func (c *skewed) Jitter() float64 { return c.inv.w.dice.Float64() }

// limited is a context that ends at a moment of virtual time. Nobody can wait for it other than by
// parking: Done is nil.
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

// Deadline is the earlier of its own and its parent's.
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

// await parks the running coroutine until a moment, at the longest until ctx ends. The error says
// why it did not last: the invocation was killed, or ctx ended first.
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

// Begin is when every simulation begins.
func Begin() time.Time { return epoch }
