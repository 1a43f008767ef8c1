package redrive

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/journal"
)

// Order is what an operator wants done with a selection of dead letters.
type Order struct {
	Selection
	How
	Rate     float64        // messages a second; 0 for no limit
	All      bool           // an empty selection means everything
	Progress func(Progress) // told of every dead letter; nil for nobody. It is called from one goroutine
}

// Progress is one dead letter's outcome and how many dead letters there were so far.
type Progress struct {
	Facts   deadletter.Facts
	Outcome Outcome
	Err     error // of Failed, or of a dead letter that was sent and could not be marked
	Done    int
}

// Tally counts outcomes.
type Tally map[Outcome]int

// Total is how many dead letters there were.
func (t Tally) Total() int {
	n := 0
	for _, c := range t {
		n += c
	}
	return n
}

// Redrive sends the selected dead letters again, oldest first: the parked ones, unless the
// selection names a state. A message is sent once for all of its dead letters that are selected. It
// goes on after a dead letter that fails; the error then says how many did and why the first. The
// tally is valid beside an error too.
func (d *Service) Redrive(ctx context.Context, o Order) (Tally, error) {
	// A redriven dead letter has a copy under way, so it is left out unless somebody asks for it.
	if o.ID == "" && o.State == "" {
		o.State = deadletter.Parked
	}
	var also func(deadletter.Facts) bool
	if o.ID == "" { // one that is named goes alone
		now := d.Clock.Now()
		also = func(f deadletter.Facts) bool { return o.matches(f, now, d.Config.Queues.DeadLetterRetention) }
	}
	done := map[string]Outcome{} // of those whose turn is still to come
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

// Drop deletes the selected dead letters for good. The rows keep dead = k: a copy that is still
// under way is not tried again. Each leaves an audit note with By. A selection of everything has to
// be said by All.
func (d *Service) Drop(ctx context.Context, o Order) (Tally, error) {
	// A drop loses the event for good, so the audit must name somebody (design section 2).
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

// each does one thing to every selected dead letter, no faster than the rate.
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
	// One failure does not end the campaign. The error at the end names the first reason.
	var first error
	failed := 0
	next := d.Clock.Now()
	err := d.List(ctx, o.Selection, func(f deadletter.Facts) error {
		// The pause comes before a call, so that the last call is not followed by a wait.
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
		// A slow call earns at most one pause, so that no burst follows it.
		if outcome == Sent || outcome == Dropped { // the others cost the queues nothing
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
