package redrive

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
)

// Order is an operator's order for a selection of dead letters.
type Order struct {
	Selection
	How
	Rate     float64        // messages a second; 0 for no limit
	All      bool           // required if the selection is empty
	Progress func(Progress) // called for every dead letter, from one goroutine; may be nil
}

// Progress is the outcome of one dead letter, and how many were handled so far.
type Progress struct {
	Facts   deadletter.Facts
	Outcome Outcome
	Err     error // of Failed, or of a dead letter that was sent but could not be marked
	Done    int
}

// Tally counts outcomes.
type Tally map[Outcome]int

// Total is how many dead letters were handled.
func (t Tally) Total() int {
	n := 0
	for _, c := range t {
		n += c
	}
	return n
}

// Redrive sends the selected dead letters again, oldest first. By default it selects the parked
// ones. A message is sent once for all of its selected dead letters. If one dead letter fails,
// Redrive continues, and the error says how many failed and why the first did. The tally is valid
// with an error, too.
func (d *Service) Redrive(ctx context.Context, o Order) (Tally, error) {
	// A redriven dead letter has a copy in its queue, so it is only selected if the state asks for
	// it.
	if o.ID == "" && o.State == "" {
		o.State = deadletter.Parked
	}
	var also func(deadletter.Facts) bool
	if o.ID == "" { // a dead letter selected by its id is sent alone
		now := d.Clock.Now()
		also = func(f deadletter.Facts) bool { return o.matches(f, now, d.Config.Queues.DeadLetterRetention) }
	}
	done := map[string]Outcome{} // dead letters that were sent with another one, and come later in the list
	return d.each(ctx, o, "redrive", func(f deadletter.Facts) (Outcome, error) {
		if outcome, ok := done[f.ID]; ok {
			delete(done, f.ID)
			return outcome, nil
		}
		outcome, with, err := d.With(ctx, f.ID, o.How, also)
		for _, id := range with {
			if done[id] = Covered; outcome == Failed {
				done[id] = Failed
			}
		}
		return outcome, err
	})
}

// Drop deletes the selected dead letters for good. The rows keep dead = k, so that a copy in a
// queue is not tried again. Each deletion leaves an audit note with By. An empty selection needs
// All.
func (d *Service) Drop(ctx context.Context, o Order) (Tally, error) {
	// A drop loses the event for good, so the audit must name an operator (design section 2).
	if o.By == "" {
		return nil, fmt.Errorf("drop dead letters: nobody is named for the audit")
	}
	if o.Selection == (Selection{}) && !o.All {
		return nil, fmt.Errorf("drop dead letters: %w: nothing is selected; say that you mean all of them", ErrFilter)
	}
	return d.each(ctx, o, "drop", func(f deadletter.Facts) (Outcome, error) {
		if o.DryRun {
			return WouldDrop, nil
		}
		if err := d.try(ctx, func() error { return d.Letters.Drop(ctx, f.ID) }); err != nil {
			return Failed, fmt.Errorf("drop dead letter %s: %w", f.ID, err)
		}
		d.note(f, journal.Dropped, fmt.Sprintf("operator %s dropped it (%s)", o.By, f.Reason))
		return Dropped, nil
	})
}

// each does one action for every selected dead letter, no faster than the rate.
func (d *Service) each(ctx context.Context, o Order, verb string, do func(deadletter.Facts) (Outcome, error)) (Tally,
	error,
) {
	if o.Rate < 0 {
		return nil, fmt.Errorf("%s dead letters: a rate of %g a second is negative", verb, o.Rate)
	}
	var pause time.Duration
	if o.Rate > 0 {
		pause = max(time.Duration(float64(time.Second)/o.Rate), 1)
	}
	tally := Tally{}
	// One failure does not end the campaign. The error at the end contains the first reason.
	var first error
	failed := 0
	next := d.Clock.Now()
	err := d.List(ctx, o.Selection, func(f deadletter.Facts) error {
		// The pause comes before a call, so that nothing waits after the last call.
		if err := d.Clock.Sleep(ctx, next.Sub(d.Clock.Now())); err != nil {
			return err
		}
		outcome, err := do(f)
		if err != nil || outcome == Failed {
			failed++
			first = cmp.Or(first, err)
		}
		tally[outcome]++
		if o.Progress != nil {
			o.Progress(Progress{f, outcome, err, tally.Total()})
		}
		// After a slow call at most one pause is skipped, so that no burst follows.
		if outcome == Sent || outcome == Dropped { // the other outcomes send nothing and write little
			next = later(next, d.Clock.Now().Add(-pause)).Add(pause)
		}
		return ctx.Err()
	})
	switch {
	case err != nil:
		return tally, fmt.Errorf("%s dead letters, %d done: %w", verb, tally.Total(), err)
	case first != nil:
		return tally, fmt.Errorf("%s dead letters: %d of %d failed, the first: %w", verb, failed, tally.Total(), first)
	}
	return tally, nil
}
