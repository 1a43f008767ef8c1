// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"runtime"
	"testing"
	"time"
)

// TestAComparisonIsBoundedInMemory measures the memory of a comparison. The memory includes the
// simulations for the bill, which have their own events.
func TestAComparisonIsBoundedInMemory(t *testing.T) { // not parallel, because the test measures memory
	if testing.Short() {
		t.Skip("three simulations of 20,000 events")
	}
	l := Steady()
	l.Rate, l.Documents, l.Lasting = MaxRate, MaxDocuments, Span(MaxEvents/MaxRate*time.Second)
	c := comparer(t)
	held := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapSys // HeapSys never falls
	}
	before := held()
	lines := ask(t, c, Question{Settings: c.Settings(), Load: l})
	if last := lines[len(lines)-1]; last.Today == nil || last.Today.Events < MaxEvents*9/10 {
		t.Fatalf("got %+v, want an outcome of %d events", last, MaxEvents)
	}
	if got := int64(held()-before) >> 20; got > memory {
		t.Errorf("it held %d MB, want at most %d", got, memory)
	} else {
		t.Logf("it held %d MB", got)
	}
}
