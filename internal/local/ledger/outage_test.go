// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
)

// If the circuit breaker opens again during an outage, no new outage begins.
func TestAnOutageLastsUntilTheSinkIsHealthyAgain(t *testing.T) {
	t.Parallel()
	l := New(0)
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	for i, n := range []journal.Note{
		{Sink: "a", Step: journal.CircuitClosed},
		{Sink: "a", Step: journal.CircuitOpened},
		{Sink: "a", Step: journal.Paused},
		{Sink: "a", Step: journal.CircuitOpened},
		{Sink: "b", Step: journal.CircuitOpened},
		{Sink: "a", Step: journal.CircuitClosed},
		{Sink: "a", Step: journal.Resumed},
	} {
		n.At = at(i)
		l.Note(n)
	}
	want := []Outage{{"a", false, at(1), at(5)}, {"a", true, at(2), at(6)}, {"b", false, at(4), time.Time{}}}
	if got := l.Outages(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for i := range 2 * maxOutages {
		step := []journal.Step{journal.CircuitOpened, journal.CircuitClosed}[i%2]
		l.Note(journal.Note{Sink: "c", Step: step, At: at(i)})
	}
	if got := l.Outages(); len(got) != maxOutages {
		t.Errorf("%d outages, want %d", len(got), maxOutages)
	}
}
