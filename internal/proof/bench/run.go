package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/proof/price"
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
	Backwards int           // times an older version replaced a newer one in the sink
	Repeats   int           // times a version was written that was there already
	Wrong     int           // documents that do not show their newest version in the end
	Never     int           // events that never became visible, nor anything newer
	Took      time.Duration // virtual time from the first message until nothing is left
}

// Run plays the trace through a contender. It belongs into a bubble of testing/synctest: time is
// the system's clock, and nothing sleeps in earnest there.
func Run(ctx context.Context, s Scenario, t *Trace, c Contender) (Result, error) {
	var mu sync.Mutex
	var faults []error
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if len(faults) < 5 {
			faults = append(faults, err)
		}
	}
	visibility := 6 * peerTimeout
	if c.Visibility != nil {
		visibility = c.Visibility(s)
	}
	w, err := newWorld(s, t, c.Fenced, visibility, fail)
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop, err := c.Start(ctx, w)
	if err != nil {
		return Result{}, fmt.Errorf("start %s: %w", c.Name, err)
	}
	delay := time.Duration(0)
	if c.Delay {
		delay = seconds(w.Config.Debounce.Quiet)
	}
	began := w.clk.Now()
	err = w.play(ctx, delay)
	took := w.clk.Now().Sub(began)
	cancel()
	stop()
	w.wg.Wait()
	if err == nil {
		err = errors.Join(faults...)
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s in scenario %s: %w", c.Name, s.Name, err)
	}
	return w.result(c, took), nil
}

func (w *World) result(c Contender, took time.Duration) Result {
	r := Result{
		Scenario: w.Scenario, Contender: c.Name, Events: len(w.Trace.Events), Docs: w.Trace.Docs, Took: took,
		Bursts: w.Trace.Debounced(w.Config.Debounce.Quiet, w.Config.Debounce.MaxWait),
		Fresh:  newFreshness(w.watch.fresh), Backwards: w.watch.backwards, Repeats: w.watch.repeats,
	}
	r.Counts, r.Usage = w.Meter.read()
	r.Wrong, r.Never = w.watch.wrong(w.Trace.Newest())
	return r
}

// per divides by a number of things.
func per(n float64, of int) float64 {
	if of == 0 {
		return 0
	}
	return n / float64(of)
}

// RowWrites is conditional writes per event.
func (r Result) RowWrites() float64 { return per(float64(r.Counts.RowWrites), r.Events) }

// RowReads is rows read per event.
func (r Result) RowReads() float64 { return per(float64(r.Counts.RowReads), r.Events) }

// Admissions is A: in how many batches a burst arrives.
func (r Result) Admissions() float64 { return per(float64(r.Counts.Admissions), r.Bursts) }

// IdealWrites is (A+2)/B: an admission per batch, a claim and a commit.
func (r Result) IdealWrites() float64 {
	return per(float64(r.Counts.Admissions+2*r.Bursts), r.Events)
}

// SinkWrites is documents written per burst.
func (r Result) SinkWrites() float64 { return per(float64(r.Counts.SinkWrites), r.Bursts) }

// QueueCalls is SQS requests per event, those of the event source mapping counted in full tens.
func (r Result) QueueCalls() float64 {
	return per(float64(r.Counts.Receives+r.Counts.Deletes+r.Counts.Holds), r.Events)
}

// Dollars is what a million events cost.
func (r Result) Dollars() float64 { return per(price.USEast1.Dollars(r.Usage), r.Events) * 1e6 }

// DollarsEager is Dollars with the polls of a poller that asks again at once.
func (r Result) DollarsEager() float64 {
	u := r.Usage
	u.QueueRequests += float64(r.Counts.EagerPolls - r.Counts.Receives)
	return per(price.USEast1.Dollars(u), r.Events) * 1e6
}

// DollarsPerDocument is what a million documents cost: bursts, each of which is one document's
// change.
func (r Result) DollarsPerDocument() float64 {
	return per(price.USEast1.Dollars(r.Usage), r.Bursts) * 1e6
}

// Late is a quantile of freshness beyond the quiet window.
func (r Result) Late(share float64) time.Duration { return r.Fresh.At(share) - r.Scenario.Quiet }
