// Package clocktest makes times for tests whose time of day and monotonic reading differ. They
// differ after somebody has set the clock, and after a machine was suspended.
package clocktest

import (
	"context"
	"time"
	"unsafe"
)

// SetForward is the time that time.Now gives after somebody has set the clock forward, or back: the
// wall says something else, and the monotonic reading beside it does not. Package time has no other
// way to make one.
func SetForward(t time.Time, by time.Duration) time.Time {
	const nanosecondBits = 30 // of the wall's word, below its seconds
	*(*uint64)(unsafe.Pointer(&t)) += uint64(by/time.Second) << nanosecondBits
	return t
}

// Suspended returns ctx as it is on a machine that was suspended for so long since the deadline was
// set: the deadline has come that much closer by the time of day, and the timer has not run.
func Suspended(ctx context.Context, by time.Duration) context.Context { return suspended{ctx, by} }

type suspended struct {
	context.Context
	by time.Duration
}

func (s suspended) Deadline() (time.Time, bool) {
	at, ok := s.Context.Deadline()
	return SetForward(at, -s.by), ok
}
