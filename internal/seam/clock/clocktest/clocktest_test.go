package index_test

import (
	"testing"
	"time"
	"unsafe"
)

// setForward is the time that time.Now gives after somebody has set the clock forward, or back: the
// wall says something else, and the monotonic reading beside it does not. Package time has no other
// way to make one.
func setForward(t time.Time, by time.Duration) time.Time {
	const nanosecondBits = 30 // of the wall's word, below its seconds
	*(*uint64)(unsafe.Pointer(&t)) += uint64(by/time.Second) << nanosecondBits
	return t
}

func TestAClockThatIsSetKeepsItsMonotonicReading(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	for _, by := range []time.Duration{0, time.Hour, -time.Hour} {
		set := setForward(begin, by)
		if d := set.Sub(begin); d != 0 {
			t.Errorf("set by %s: %s have passed, want none", by, d)
		}
		if d := set.Round(0).Sub(begin.Round(0)); d != by {
			t.Errorf("set by %s: the wall moved by %s", by, d)
		}
	}
}
