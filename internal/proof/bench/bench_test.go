// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Bleve's analysis workers run until the process ends.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker"))
}

func contender(t *testing.T, name string) Contender {
	t.Helper()
	i := slices.IndexFunc(Contenders(), func(c Contender) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no contender %q", name)
	}
	return Contenders()[i]
}

// small returns the base scenario with a shorter time.
func small() Scenario {
	s := base()
	s.Name, s.Shape.For = "small", 20*time.Second
	return s
}

func TestEveryContenderBringsEveryEventIntoTheSink(t *testing.T) {
	t.Parallel()
	for _, c := range Contenders() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			r := Run(t, small(), c)
			if r.Never > 0 {
				t.Errorf("%d events never became visible", r.Never)
			}
			if got, want := len(r.Fresh), r.Bursts; got != want {
				t.Errorf("%d bursts became visible, want %d", got, want)
			}
			if r.Dollars() <= 0 || r.Counts.Invocations == 0 || r.Counts.Receives == 0 {
				t.Errorf("it was for nothing: $%v, %+v", r.Dollars(), r.Counts)
			}
		})
	}
}

func TestLullKeepsItsNumbers(t *testing.T) {
	t.Parallel()
	r := Run(t, small(), contender(t, "lull"))
	if r.Wrong > 0 || r.Backwards > 0 {
		t.Errorf("%d documents are wrong, the sink went back %d times", r.Wrong, r.Backwards)
	}
	if got, limit := r.RowWrites(), 1.12*r.IdealWrites(); got > limit {
		t.Errorf("%.3f row writes an event, want at most %.3f: within 12 %% of (A+2)/B", got, limit)
	}
	if got := r.SinkWrites(); got > 1.01 {
		t.Errorf("%.3f sink writes a burst, want at most 1.01", got)
	}
	if got := r.Late(0.99); got > 1300*time.Millisecond {
		t.Errorf("p99 freshness is quiet + %s, want at most 1.3 s", got)
	}
	if got := r.Dollars(); got > 1.15 {
		t.Errorf("$%.3f for a million events, want at most 1.15", got)
	}
}

func TestLullComesThroughEveryTrial(t *testing.T) {
	t.Parallel()
	for _, x := range Trials() {
		t.Run(x.Name, func(t *testing.T) {
			t.Parallel()
			r := Run(t, x.Scenario(), contender(t, "lull"))
			if r.End != (End{}) || r.Backwards > 0 {
				t.Errorf("%+v, the sink went back %d times", r.End, r.Backwards)
			}
		})
	}
}

// TestWhatThePeersDoNotGiveShows checks that the faults of the peers show. If these faults did not
// show, the comparison would prove nothing.
func TestWhatThePeersDoNotGiveShows(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		contender, trial string
		shows            func(r Result) bool
	}{
		{"execution per document", "faults", func(r Result) bool { return r.Lost > 0 }},
		{"execution per document", "source restored", func(r Result) bool { return r.Wrong == r.Docs }},
		{"execution per document", "sink restored", func(r Result) bool { return r.Resurrected > 0 }},
		{"version table", "disorder", func(r Result) bool { return r.SinkWrites() > 2 }},
		{"version table", "equal versions", func(r Result) bool { return r.Backwards > 0 && r.Wrong > 0 }},
		{"version table", "source restored", func(r Result) bool { return r.Wrong == r.Docs }},
		{"DelaySeconds with versions", "old copies", func(r Result) bool { return r.Resurrected > 0 }},
		{"DelaySeconds with versions", "disorder", func(r Result) bool { return r.SinkWrites() > 2 }},
		{"visibility with versions", "old copies", func(r Result) bool { return r.Resurrected > 0 }},
		{"visibility with versions", "disorder", func(r Result) bool { return r.Counts.Received == 2*r.Events }},
		{"DelaySeconds", "disorder", func(r Result) bool { return r.Wrong > 0 && r.Counts.RowWrites == 0 }},
		{"idempotency table", "late puts", func(r Result) bool { return r.Resurrected > 0 && r.SinkWrites() > 4 }},
		{"lock polling", "resync", func(r Result) bool { return r.Lost > 0 }},
	} {
		t.Run(x.contender+"/"+x.trial, func(t *testing.T) {
			t.Parallel()
			if r := Run(t, trial(x.trial).Scenario(), contender(t, x.contender)); !x.shows(r) {
				t.Errorf("%+v, went back %d, sink writes a burst %.2f: %+v", r.End, r.Backwards, r.SinkWrites(), r.Counts)
			}
		})
	}
}

// TestThePeersAreAsStrongAsTheyCanBe checks that each peer passes the trials that its design can
// pass. A comparison with weaker peers would be unfair.
func TestThePeersAreAsStrongAsTheyCanBe(t *testing.T) {
	t.Parallel()
	for _, c := range Strongest() {
		for _, name := range []string{"disorder", "late puts", "resync", "an hour without the sink"} {
			t.Run(c.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				if r := Run(t, trial(name).Scenario(), c); r.End != (End{}) || r.Backwards > 0 {
					t.Errorf("%+v, the sink went back %d times", r.End, r.Backwards)
				}
			})
		}
	}
}

// TestAnExecutionPerDocumentLosesOnlyLostExecutions: this peer loses a change only if its execution
// is lost. This peer survives all other faults.
func TestAnExecutionPerDocumentLosesOnlyLostExecutions(t *testing.T) {
	t.Parallel()
	c := contender(t, "execution per document")
	start := c.Start
	c.Start = func(ctx context.Context, w *World) {
		w.mix.Rates.FlightLost = 0
		start(ctx, w)
	}
	if r := Run(t, trial("faults").Scenario(), c); r.End != (End{}) {
		t.Errorf("%+v", r.End)
	}
}
