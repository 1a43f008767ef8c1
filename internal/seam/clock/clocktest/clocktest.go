// SPDX-License-Identifier: Apache-2.0

// Package clocktest makes times for tests in which the time of day and the monotonic reading
// differ. Real times differ in this way after somebody has set the clock, and after a machine was
// suspended.
package clocktest

import (
	"context"
	"time"
	"unsafe"
)

// SetForward returns t as time.Now would return it after somebody has set the clock forward by a
// duration, or back if the duration is negative. The time of day changes, and the monotonic reading
// does not. Package time has no other way to make such a time.
func SetForward(t time.Time, by time.Duration) time.Time {
	const nanosecondBits = 30 // the low bits of the first word, below the seconds
	*(*uint64)(unsafe.Pointer(&t)) += uint64(by/time.Second) << nanosecondBits
	return t
}

// Suspended returns ctx as it is on a machine that was suspended for a duration since the deadline
// was set. By the time of day the deadline is nearer by this duration, but the timer has not run.
func Suspended(ctx context.Context, by time.Duration) context.Context { return suspended{ctx, by} }

type suspended struct {
	context.Context
	by time.Duration
}

func (s suspended) Deadline() (time.Time, bool) {
	at, ok := s.Context.Deadline()
	return SetForward(at, -s.by), ok
}
