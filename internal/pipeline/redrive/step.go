// SPDX-License-Identifier: Apache-2.0

package redrive

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
)

// MaxStep is how many dead letters a step selects at most.
const MaxStep = 100

// Order is an operator's order for the next of the selected dead letters, oldest first.
type Order struct {
	Selection
	How
	All   bool // required to drop an empty selection
	From  Place
	Limit int // how many dead letters to select at most, 1 to MaxStep
}

// Place says where a step begins. The zero Place is the place of the first step.
type Place struct {
	Cursor string `json:"cursor,omitempty"`
	// Until is when the first step began. A dead letter that dies later is not selected. So a dead
	// letter that dies again is not selected twice.
	Until time.Time `json:"until,omitzero"`
	// Sent has the ids of dead letters that were already sent together with an earlier dead letter
	// of their message. They are later in the list, and the step that reaches them skips them.
	Sent []string `json:"sent,omitempty"`
}

// maxSent bounds Place.Sent. If there are more ids, a message may be sent twice.
const maxSent = 1000

// Step is the result of a step.
type Step struct {
	Done []Done
	Next *Place // nil at the end
}

// Done is the result for one dead letter.
type Done struct {
	deadletter.Facts
	Outcome Outcome
	Err     error // the error of Failed, or of a dead letter that was sent but could not be marked
}

// Redrive sends the next selected dead letters again. By default, the parked dead letters are
// selected. A message is sent once for all its selected dead letters. If one dead letter fails,
// Redrive continues with the next one.
func (d *Service) Redrive(ctx context.Context, o Order) (Step, error) {
	// The copy of a redriven dead letter is in its queue. So a redriven dead letter is selected
	// only if the selection asks for this state.
	if o.ID == "" && o.State == "" {
		o.State = deadletter.Parked
	}
	return d.step(ctx, o, func(s Selection, f deadletter.Facts) (Outcome, []deadletter.Facts, error) {
		if s.ID != "" { // a dead letter selected by its id is sent alone
			return d.With(ctx, f.ID, o.How, nil)
		}
		now := d.Clock.Now()
		return d.With(ctx, f.ID, o.How, func(f deadletter.Facts) bool {
			return s.matches(f, now, d.Config.Queues.DeadLetterRetention)
		})
	})
}

// Drop deletes the next selected dead letters for good. The rows keep dead = k, so that a copy in a
// queue is not tried again. Each deletion leaves an audit note with By. An empty selection needs
// All.
func (d *Service) Drop(ctx context.Context, o Order) (Step, error) {
	// A drop loses the event for good, so the audit must name an operator (design section 2).
	if o.By == "" {
		return Step{}, fmt.Errorf("drop dead letters: the audit needs the name of an operator")
	}
	if o.Selection == (Selection{}) && !o.All {
		return Step{}, fmt.Errorf("drop dead letters: %w: the selection is empty; ask for all dead letters to drop all", ErrFilter)
	}
	return d.step(ctx, o, func(_ Selection, f deadletter.Facts) (Outcome, []deadletter.Facts, error) {
		if o.DryRun {
			return WouldDrop, nil, nil
		}
		if err := d.try(ctx, func() error { return d.Letters.Drop(ctx, f.ID) }); err != nil {
			return Failed, nil, fmt.Errorf("drop dead letter %s: %w", f.ID, err)
		}
		d.note(f, journal.Dropped, fmt.Sprintf("operator %s dropped the dead letter (%s)", o.By, f.Reason))
		return Dropped, nil, nil
	})
}

// step does one action for each of the next selected dead letters.
func (d *Service) step(ctx context.Context, o Order,
	do func(Selection, deadletter.Facts) (Outcome, []deadletter.Facts, error),
) (s Step, err error) {
	if err := o.Validate(); err != nil {
		return s, err
	}
	if o.ID != "" {
		l, err := d.Show(ctx, o.ID)
		if err != nil {
			return s, err
		}
		outcome, _, err := do(o.Selection, l.Facts)
		s.Done = append(s.Done, Done{l.Facts, outcome, err})
		return s, nil
	}
	p := o.From
	if p.Until.IsZero() {
		p.Until = d.Clock.Now()
	}
	o.Selection = o.until(p.Until)
	found, next, err := d.pages(ctx, o.Selection, p.Cursor, cmp.Or(o.Limit, MaxStep))
	if err != nil {
		return s, err
	}
	sent := map[string]bool{}
	for _, id := range p.Sent {
		sent[id] = true
	}
	for _, f := range found {
		if sent[f.ID] {
			delete(sent, f.ID)
			continue
		}
		outcome, with, err := do(o.Selection, f)
		s.Done = append(s.Done, Done{f, outcome, err})
		covered := Covered
		if outcome == Failed {
			covered = Failed
		}
		for _, f := range with {
			sent[f.ID] = true
			s.Done = append(s.Done, Done{f, covered, err})
		}
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
	}
	if next == "" {
		return s, nil
	}
	s.Next = &Place{Cursor: next, Until: p.Until}
	if o.DryRun || o.State == deadletter.Redriven { // in all other cases the later pages do not have these dead letters
		for id := range sent {
			s.Next.Sent = append(s.Next.Sent, id)
		}
		slices.Sort(s.Next.Sent)
		s.Next.Sent = s.Next.Sent[:min(len(s.Next.Sent), maxSent)]
	}
	return s, nil
}
