package clock

import (
	"context"
	"math"
	"sync"
	"time"
)

// Fast lets waits pass a number of times faster; what it shows stays as it would be. Only waiting
// is faster. While somebody works (see [Working]) the clock goes as fast as the machine's, because
// a disk or a computation does not get faster; so it does until whoever it woke is running. It
// never passes the time at which it owes somebody a wake-up: a timer that comes late costs nothing.
type Fast struct {
	speed float64

	mu       sync.Mutex
	origin   time.Time
	shown    time.Duration // since origin, at real time at
	at       time.Time
	slow     int // who works, and who was woken and has not run yet
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

// From makes the clock show at least t from now on: a clock that ran ahead in an earlier run must
// not go back. Call it before anybody waits.
func (f *Fast) From(t time.Time) *Fast {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown = max(f.advance(), t.Sub(f.origin))
	return f
}

// Working tells the clock that somebody works until done is called, once. Clocks that do not care
// ignore it.
func Working(c Clock) (done func()) {
	f, ok := c.(*Fast)
	if !ok {
		return func() {}
	}
	f.change(func(time.Duration) { f.slow++ })
	return f.awake
}

// awake ends one reason to be slow.
func (f *Fast) awake() { f.change(func(time.Duration) { f.slow-- }) }

// change changes who works or waits, at the time that the clock shows now.
func (f *Fast) change(do func(now time.Duration)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f.advance())
	f.arm()
}

// Now is what the clock shows.
func (f *Fast) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.origin.Add(f.advance())
}

// advance moves shown to the present, and at most to the next wake-up.
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

// real is how long the machine's clock takes to a time d ahead, if nobody begins or ends to work
// until then. It is never nothing.
func (f *Fast) real(d time.Duration) time.Duration {
	if f.slow == 0 {
		d = time.Duration(math.Ceil(float64(d) / f.speed))
	}
	return max(d, 1)
}

// tick wakes whoever's time has come. Each makes the clock slow until it says that it runs.
func (f *Fast) tick() {
	f.change(func(now time.Duration) {
		for s, ok := f.sleepers.Due(now); ok; s, ok = f.sleepers.Due(now) {
			s.woken = true
			f.slow++
			s.wake()
		}
	})
}

// add begins a wait of d > 0. wake is called under the lock.
func (f *Fast) add(d time.Duration, wake func()) *sleeper {
	s := &sleeper{wake: wake}
	f.change(func(now time.Duration) { f.sleepers.Add(now+d, s, &s.place) })
	return s
}

// end ends a wait: whoever waited runs again. It may be called twice.
func (f *Fast) end(s *sleeper) {
	f.change(func(time.Duration) {
		f.sleepers.Remove(&s.place)
		if s.woken {
			s.woken = false
			f.slow--
		}
	})
}

// Sleep waits until the clock shows d more.
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

// Deadline returns a context that ends when the clock shows d more.
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

// expect is when by the machine's clock a deadline will come, as far as can be seen now.
func (f *Fast) expect(ctx context.Context, d time.Duration) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := time.Now().Add(f.real(d))
	if parent, ok := ctx.Deadline(); ok && parent.Before(at) {
		return parent
	}
	return at
}

// deadline is a context that ends by a Fast.
type deadline struct {
	context.Context
	at   time.Time // about, by the machine's clock
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
