package bench

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/simulation/price"
)

// Result is what one contender did with one scenario.
type Result struct {
	Scenario  Scenario
	Contender string
	Events    int // sent, those sent twice counted twice
	Docs      int
	Bursts    int // as a debouncer in one process counts them
	Counts    Counts
	Usage     price.Usage
	Fresh     Freshness
	Backwards int // times an older state of a document replaced a newer one in the sink
	End
}

// Run plays the scenario's trace through a contender, in a bubble of testing/synctest: there
// nothing really sleeps.
func Run(t *testing.T, s Scenario, c Contender) (r Result) {
	t.Helper()
	trace := NewTrace(s.Shape)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, s, trace, c)
		ctx, cancel := context.WithCancel(t.Context())
		c.Start(ctx, w)
		delay := time.Duration(0)
		if c.Delay {
			delay = seconds(w.Config.Debounce.Quiet)
		}
		err := w.play(ctx, delay)
		cancel()
		w.stop()
		w.wg.Wait()
		check(t, err)
		r = w.result(c)
	})
	return r
}

// check ends a test where something fails that no run may meet.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *World) result(c Contender) Result {
	r := Result{
		Scenario: w.Scenario, Contender: c.Name, Events: len(w.Trace.Events), Docs: w.Trace.Docs,
		Bursts: w.Trace.Debounced(w.Config.Debounce.Quiet, w.Config.Debounce.MaxWait),
		Fresh:  slices.Sorted(slices.Values(w.watch.fresh)), Backwards: w.watch.backwards,
	}
	r.Counts, r.Usage = w.Meter.read()
	r.End = w.watch.end(w.Trace.Newest())
	return r
}

// per divides by a number of things.
func per(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// RowWrites is conditional writes per event.
func (r Result) RowWrites() float64 { return per(r.Counts.RowWrites, r.Events) }

// Admissions is A: in how many batches a burst arrives.
func (r Result) Admissions() float64 { return per(r.Counts.Admissions, r.Bursts) }

// IdealWrites is (A+2)/B: an admission per batch, a claim and a commit.
func (r Result) IdealWrites() float64 { return per(r.Counts.Admissions+2*r.Bursts, r.Events) }

// SinkWrites is documents written per burst.
func (r Result) SinkWrites() float64 { return per(r.Counts.SinkWrites, r.Bursts) }

// dollarsFor is what a million things cost, where the usage paid for so many of them.
func dollarsFor(u price.Usage, things int) float64 {
	if things == 0 {
		return 0
	}
	return price.USEast1.Dollars(u) / float64(things) * 1e6
}

// Dollars is what a million events cost.
func (r Result) Dollars() float64 { return dollarsFor(r.Usage, r.Events) }

// DollarsEager is Dollars with the polls of a poller that asks again at once.
func (r Result) DollarsEager() float64 {
	r.Usage.QueueRequests += float64(r.Counts.EagerPolls - r.Counts.Receives)
	return r.Dollars()
}

// DollarsPerDocument is what a million documents cost: bursts, each of which is one document's
// change.
func (r Result) DollarsPerDocument() float64 { return dollarsFor(r.Usage, r.Bursts) }

// eventsAMonth is 300,000 a day for thirty days, in millions.
const eventsAMonth = 0.3 * 30

// Month is what a month of the month's scenario costs.
func (r Result) Month() float64 { return r.Dollars() * eventsAMonth }

// MonthEager is Month with the polls of a poller that asks again at once.
func (r Result) MonthEager() float64 { return r.DollarsEager() * eventsAMonth }

// MeanManifest is the mean size of a manifest, in bytes.
func (r Result) MeanManifest() int { return r.Counts.ManifestBytes / max(1, r.Counts.Manifests) }

// Late is a quantile of freshness beyond the quiet window.
func (r Result) Late(share float64) time.Duration { return r.Fresh.At(share) - r.Scenario.Quiet }
