// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"context"
	"math"
	"sync"
	"time"
)

// Fast is a clock on which waits pass faster by a factor. Only waits are faster: disks and
// computations are not. So the clock runs at the machine's speed while a caller works (see
// [Working]). The clock also runs at the machine's speed from the wake-up of a caller until that
// caller runs. The clock stops at the time of the next wake-up until the timer has fired. So a late
// timer does not make any caller late on this clock.
type Fast struct {
	speed float64

	mu       sync.Mutex
	origin   time.Time
	shown    time.Duration // what the clock showed at the real time at, since origin
	at       time.Time
	slow     int // how many callers work, or were woken and do not run yet
	sleepers Agenda[*sleeper]
	timer    *time.Timer
}

// NewFast returns a clock whose waits pass speed times faster. A speed that is not positive and
// finite counts as 1.
func NewFast(speed float64) *Fast {
	if !(speed > 0) || math.IsInf(speed, 1) {
		speed = 1
	}
	now := time.Now()
	return &Fast{speed: speed, origin: now, at: now}
}

// From makes the clock show at least t from now on. An earlier run may have shown later times than
// the machine's clock, and time must not go back. Call From before any caller waits.
func (f *Fast) From(t time.Time) *Fast {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown = max(f.advance(), t.Sub(f.origin))
	return f
}

// Working tells the clock that the caller works until the caller calls done, once. If c is not a
// Fast, Working does nothing.
func Working(c Clock) (done func()) {
	f, ok := c.(*Fast)
	if !ok {
		return func() {}
	}
	f.change(func(time.Duration) { f.slow++ })
	return f.awake
}

// awake removes one caller from slow.
func (f *Fast) awake() { f.change(func(time.Duration) { f.slow-- }) }

// change lets do change which callers work or wait, at the time that the clock shows now.
func (f *Fast) change(do func(now time.Duration)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f.advance())
	f.arm()
}

// Now returns what the clock shows.
func (f *Fast) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.origin.Add(f.advance())
}

// advance moves shown to the present, but not past the next wake-up. It returns shown.
func (f *Fast) advance() time.Duration {
	now := time.Now()
	passed := now.Sub(f.at)
	if f.slow == 0 {
		passed = time.Duration(float64(passed) * f.speed)
	}
	f.at = now
	f.shown += passed
	if next, _, ok := f.sleepers.First(); ok {
		f.shown = min(f.shown, next)
	}
	return f.shown
}

// arm sets the timer to the next wake-up. Call it after advance.
func (f *Fast) arm() {
	next, _, ok := f.sleepers.First()
	switch wait := f.real(next - f.shown); {
	case ok && f.timer == nil:
		f.timer = time.AfterFunc(wait, f.tick)
	case ok:
		f.timer.Reset(wait)
	case f.timer != nil:
		f.timer.Stop()
	}
}

// real returns how long the machine's clock takes until this clock has moved by d. It assumes that
// slow does not change in the meantime. The result is at least 1 ns.
func (f *Fast) real(d time.Duration) time.Duration {
	if f.slow == 0 {
		d = time.Duration(math.Ceil(float64(d) / f.speed))
	}
	return max(d, 1)
}

// tick wakes every caller whose time has come. Each caller keeps the clock slow until the caller
// runs.
func (f *Fast) tick() {
	f.change(func(now time.Duration) {
		for s, ok := f.sleepers.Due(now); ok; s, ok = f.sleepers.Due(now) {
			s.woken = true
			f.slow++
			s.wake()
		}
	})
}

// add begins a wait of d > 0. The clock calls wake while the clock holds its lock.
func (f *Fast) add(d time.Duration, wake func()) *sleeper {
	s := &sleeper{wake: wake}
	f.change(func(now time.Duration) { f.sleepers.Add(now+d, s, &s.place) })
	return s
}

// end ends a wait: the caller that waited runs again. end may be called twice for one wait.
func (f *Fast) end(s *sleeper) {
	f.change(func(time.Duration) {
		f.sleepers.Remove(&s.place)
		if s.woken {
			s.woken = false
			f.slow--
		}
	})
}

// Sleep waits until the clock has moved by d.
func (f *Fast) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	woken := make(chan struct{})
	s := f.add(d, func() { close(woken) })
	defer f.end(s)
	select {
	case <-woken:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Deadline returns a context that ends when the clock has moved by d.
func (f *Fast) Deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithTimeout(ctx, d)
	}
	c := &deadline{Context: ctx, done: make(chan struct{})}
	s := f.add(d, func() { c.end(context.DeadlineExceeded) })
	c.at = f.expect(ctx, d)
	stop := context.AfterFunc(ctx, func() { c.end(ctx.Err()) })
	return c, func() {
		stop()
		c.end(context.Canceled)
		f.end(s)
	}
}

// expect estimates when a deadline will come by the machine's clock.
func (f *Fast) expect(ctx context.Context, d time.Duration) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := time.Now().Add(f.real(d))
	if parent, ok := ctx.Deadline(); ok && parent.Before(at) {
		return parent
	}
	return at
}

// deadline is a context that ends by a [Fast] clock.
type deadline struct {
	context.Context
	at   time.Time // estimated, by the machine's clock
	done chan struct{}

	mu  sync.Mutex
	err error
}

func (c *deadline) Deadline() (time.Time, bool) { return c.at, true }

func (c *deadline) Done() <-chan struct{} { return c.done }

func (c *deadline) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// end ends the context, if it has not ended yet.
func (c *deadline) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.done)
	}
}

// sleeper is one wait.
type sleeper struct {
	wake  func()
	place Place
	woken bool
}
