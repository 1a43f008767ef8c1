// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/simulation/price"
)

// Result is the result of one contender in one scenario.
type Result struct {
	Scenario  Scenario
	Contender string
	Events    int // events sent; an event that is sent twice counts twice
	Docs      int
	Bursts    int // bursts, as a debouncer in one process counts them
	Counts    Counts
	Usage     price.Usage
	Fresh     Freshness
	Backwards int // how often an older state of a document replaced a newer one in the sink
	End
}

// Run plays the scenario's trace through a contender. The run is in a bubble of testing/synctest,
// in which time is virtual.
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

// check ends the test if there is an error, because no run may have one.
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

// per returns n for each of a number of things, or 0 if there are none.
func per(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// RowWrites returns the number of conditional writes for each event.
func (r Result) RowWrites() float64 { return per(r.Counts.RowWrites, r.Events) }

// Admissions returns A, the number of batches over which a burst is spread.
func (r Result) Admissions() float64 { return per(r.Counts.Admissions, r.Bursts) }

// IdealWrites returns (A+2)/B: an admission for each batch, a claim and a commit, divided by the
// events of a burst.
func (r Result) IdealWrites() float64 { return per(r.Counts.Admissions+2*r.Bursts, r.Events) }

// SinkWrites returns the number of documents written for each burst.
func (r Result) SinkWrites() float64 { return per(r.Counts.SinkWrites, r.Bursts) }

// dollarsFor returns the cost of a million things if the usage paid for the given number of them.
func dollarsFor(u price.Usage, things int) float64 {
	if things == 0 {
		return 0
	}
	return price.USEast1.Dollars(u) / float64(things) * 1e6
}

// Dollars returns the cost of a million events.
func (r Result) Dollars() float64 { return dollarsFor(r.Usage, r.Events) }

// DollarsEager returns Dollars for pollers that ask again at once after each answer.
func (r Result) DollarsEager() float64 {
	r.Usage.QueueRequests += float64(r.Counts.EagerPolls - r.Counts.Receives)
	return r.Dollars()
}

// eventsAMonth is 300,000 a day for thirty days, in millions of events.
const eventsAMonth = 0.3 * 30

// Month returns the cost of a month in the scenario of the month.
func (r Result) Month() float64 { return r.Dollars() * eventsAMonth }

// MeanManifest returns the mean size of a manifest in bytes.
func (r Result) MeanManifest() int { return r.Counts.ManifestBytes / max(1, r.Counts.Manifests) }

// Late returns a quantile of freshness minus the quiet window.
func (r Result) Late(share float64) time.Duration { return r.Fresh.At(share) - r.Scenario.Quiet }
