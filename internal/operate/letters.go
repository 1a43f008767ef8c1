package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/lullhq/lull/internal/letter"
	"github.com/lullhq/lull/internal/redrive"
)

func (f LetterFilter) selection() redrive.Selection {
	return redrive.Selection{ID: f.ID, Filter: letter.Filter{
		Reason: f.Reason, Collection: f.Collection, Doc: f.Key, After: f.After, Before: f.Before, State: f.State,
	}}
}

func asLetter(f letter.Facts) Letter {
	l := Letter{
		ID: f.ID, Key: f.Doc, OrderKey: f.Key.String(), Reason: f.Reason, Detail: f.Detail, State: f.State, Sink: f.Sink, Lane: f.Lane,
		MessageID: f.MessageID, Sent: f.Sent, Died: f.Died, Refusals: f.Refusals, FirstError: f.FirstError, LastError: f.LastError,
		Redriven: f.RedrivenAt, Redrives: f.Redrives, Auto: f.Auto,
	}
	if p, err := f.Key.Parts(); err == nil {
		l.Version = p.Version.Text()
	}
	return l
}

// wrong turns what the use case calls a wrong selection into ErrInput, and a missing letter into ErrNotFound.
func wrong(err error) error {
	switch {
	case errors.Is(err, redrive.ErrFilter):
		return input(err)
	case errors.Is(err, redrive.ErrUnknown):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

// Letters lists dead letters.
func (o *Operator) Letters(ctx context.Context, f LetterFilter) ([]Letter, error) {
	out := []Letter{}
	err := o.desk().List(ctx, f.selection(), func(facts letter.Facts) error {
		out = append(out, asLetter(facts))
		return nil
	})
	return out, wrong(err)
}

// Letter shows one.
func (o *Operator) Letter(ctx context.Context, id string) (Letter, error) {
	full, err := o.desk().Show(ctx, id)
	if err != nil {
		return Letter{}, wrong(err)
	}
	l := asLetter(full.Facts)
	l.Body, l.Attributes = full.Body, full.Attributes
	return l, nil
}

// Redrive sends letters again.
func (o *Operator) Redrive(ctx context.Context, r LetterOrder) (LetterResult, error) {
	var res LetterResult
	tally, err := o.desk().Redrive(ctx, r.order(&res))
	return res.counted(tally), wrong(err)
}

// Drop deletes letters.
func (o *Operator) Drop(ctx context.Context, r LetterOrder) (LetterResult, error) {
	var res LetterResult
	tally, err := o.desk().Drop(ctx, r.order(&res))
	return res.counted(tally), wrong(err)
}

// maxLines is how many letters an answer names; the counts are of all.
const maxLines = 1000

func (r LetterOrder) order(res *LetterResult) redrive.Order {
	return redrive.Order{
		Selection: r.selection(), How: redrive.How{Force: r.Force, DryRun: r.DryRun, By: r.By}, Rate: r.Rate, All: r.All,
		Progress: func(p redrive.Progress) {
			if len(res.Lines) >= maxLines {
				return
			}
			line := LetterLine{Letter: asLetter(p.Facts), Outcome: string(p.Outcome)}
			if p.Err != nil {
				line.Error = p.Err.Error()
			}
			res.Lines = append(res.Lines, line)
		},
	}
}

func (r LetterResult) counted(t redrive.Tally) LetterResult {
	r.Outcomes = map[string]int{}
	for o, n := range t {
		r.Outcomes[string(o)] = n
	}
	return r
}
