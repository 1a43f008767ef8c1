package bench

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Bleve keeps its analysis workers for the life of the process.
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

// small is the base scenario cut short.
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
	if got := r.Dollars(); got > 0.85 {
		t.Errorf("$%.3f for a million events, want at most 0.85", got)
	}
}

// What the peers lack must show, or the comparison says nothing.
func TestWhatThePeersDoNotGiveShows(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]func(r Result) bool{
		"idempotency table": func(r Result) bool {
			return r.SinkWrites() > 4.9 && r.Backwards > 0 &&
				r.RowWrites() == 2
		},
		"lock polling": func(r Result) bool {
			return r.SinkWrites() > 3 && r.Backwards == 0 &&
				r.RowWrites() > 2.5
		},
		"visibility only": func(r Result) bool {
			return r.SinkWrites() > 1.5 && r.Wrong > 0 &&
				r.Counts.Received == 2*r.Events
		},
		"DelaySeconds": func(r Result) bool {
			return r.SinkWrites() > 1.5 && r.Wrong > 0 &&
				r.Counts.RowWrites == 0
		},
		"execution per document": func(r Result) bool {
			return r.SinkWrites() < 1.01 && r.Counts.Starts == r.Bursts &&
				r.Dollars() > 20
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := Run(t, small(), contender(t, name)); !check(r) {
				t.Errorf("row writes %.3f, sink writes a burst %.3f, went back %d, wrong %d, $%.2f: %+v",
					r.RowWrites(), r.SinkWrites(), r.Backwards, r.Wrong, r.Dollars(), r.Counts)
			}
		})
	}
}
