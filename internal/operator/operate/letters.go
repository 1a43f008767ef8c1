package operate

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// selection converts a filter. A key without a sink selects the document in all sinks, also in a
// sink that the settings no longer have.
func (o *Operator) selection(f LetterFilter) redrive.Selection {
	s := redrive.Selection{ID: f.ID, Filter: deadletter.Filter{
		Reason: f.Reason, Collection: f.Collection, After: f.After, Before: f.Before, State: f.State,
	}}
	if f.Key.Sink() == "" {
		s.Document = f.Key
	} else {
		s.Doc = o.row(f.Key)
	}
	return s
}

func asLetter(f deadletter.Facts) Letter {
	return Letter{
		ID: f.ID, Key: f.Doc, OrderKey: f.Key.String(), Version: f.Key.VersionText(), Reason: f.Reason,
		Detail: f.Detail, State: f.State,
		Sink: f.Sink, Lane: f.Lane,
		MessageID: f.MessageID, Sent: f.Sent, Died: f.Died, Refusals: f.Refusals, FirstError: f.FirstError,
		LastError: f.LastError,
		Redriven:  f.RedrivenAt, Redrives: f.Redrives, Auto: f.Auto,
	}
}

// Letters lists dead letters.
func (o *Operator) Letters(ctx context.Context, f LetterFilter) ([]Letter, error) {
	return o.list(ctx, o.selection(f))
}

// lettersOf lists the dead letters of one row. An empty state means any state.
func (o *Operator) lettersOf(ctx context.Context, row shard.DocID, state deadletter.State) ([]Letter, error) {
	return o.list(ctx, redrive.Selection{Filter: deadletter.Filter{Doc: row, State: state}})
}

func (o *Operator) list(ctx context.Context, s redrive.Selection) ([]Letter, error) {
	out := []Letter{}
	err := o.redrives().List(ctx, s, func(facts deadletter.Facts) error {
		out = append(out, asLetter(facts))
		return nil
	})
	return out, kind(err)
}

// The default and the largest size of a page of dead letters.
const (
	pageSize    = 100
	maxPageSize = 1000
)

// LetterPage lists dead letters page by page.
func (o *Operator) LetterPage(ctx context.Context, q LetterQuery) (LetterPage, error) {
	p := LetterPage{Letters: []Letter{}}
	limit, err := limited(q.Limit, pageSize, maxPageSize)
	if err != nil {
		return p, err
	}
	if q.ID != "" {
		list, err := o.Letters(ctx, q.LetterFilter)
		return LetterPage{Letters: list}, err
	}
	found, next, err := o.redrives().Page(ctx, o.selection(q.LetterFilter), q.Cursor, limit)
	for _, f := range found {
		p.Letters = append(p.Letters, asLetter(f))
	}
	p.Next = next
	return p, kind(err)
}

// errEnough stops a count at maxCount.
var errEnough = errors.New("enough")

// LetterGroups counts dead letters by reason.
func (o *Operator) LetterGroups(ctx context.Context, f LetterFilter) (LetterGroups, error) {
	groups, n := map[deadletter.Reason]*LetterGroup{}, 0
	err := o.redrives().List(ctx, o.selection(f), func(l deadletter.Facts) error {
		if n++; n > maxCount {
			return errEnough
		}
		g := groups[l.Reason]
		if g == nil {
			g = &LetterGroup{Reason: l.Reason, Oldest: l.Died}
			groups[l.Reason] = g
		}
		if g.Newest = l.Died; l.State == deadletter.Parked {
			g.Parked++
		} else {
			g.Redriven++
		}
		return nil
	})
	all := LetterGroups{Groups: []LetterGroup{}, Capped: errors.Is(err, errEnough)}
	if all.Capped {
		err = nil
	}
	for _, g := range groups {
		all.Groups = append(all.Groups, *g)
	}
	slices.SortFunc(all.Groups, func(a, b LetterGroup) int {
		return cmp.Or(b.Parked+b.Redriven-a.Parked-a.Redriven, cmp.Compare(a.Reason, b.Reason))
	})
	return all, kind(err)
}

// Letter shows a dead letter with its body.
func (o *Operator) Letter(ctx context.Context, id string) (Letter, error) {
	full, err := o.redrives().Show(ctx, id)
	if err != nil {
		return Letter{}, kind(err)
	}
	l := asLetter(full.Facts)
	l.Body, l.Attributes = full.Body, full.Attributes
	l.Source = o.Sources.At(l.Sink).SourceOf(queue.Message{Body: full.Body, Attributes: full.Attributes})
	return l, nil
}

// Redrive sends the next selected dead letters again.
func (o *Operator) Redrive(ctx context.Context, r LetterOrder) (LetterResult, error) {
	return r.do(ctx, o.selection(r.LetterFilter), o.redrives().Redrive)
}

// Drop deletes the next selected dead letters for good.
func (o *Operator) Drop(ctx context.Context, r LetterOrder) (LetterResult, error) {
	return r.do(ctx, o.selection(r.LetterFilter), o.redrives().Drop)
}

func (r LetterOrder) do(ctx context.Context, of redrive.Selection,
	step func(context.Context, redrive.Order) (redrive.Step, error),
) (LetterResult, error) {
	res := LetterResult{Outcomes: map[string]int{}, Lines: []LetterLine{}}
	limit, wrong := limited(r.Limit, redrive.MaxStep, redrive.MaxStep)
	if err := cmp.Or(named(r.By), rated(r.Rate, "dead letters"), wrong); err != nil {
		return res, err
	}
	did, err := step(ctx, redrive.Order{
		Selection: of, How: redrive.How{Force: r.Force, DryRun: r.DryRun, By: r.By}, All: r.All, From: r.From,
		Limit: limit,
	})
	for _, d := range did.Done {
		line := LetterLine{Letter: asLetter(d.Facts), Outcome: string(d.Outcome)}
		if d.Err != nil {
			line.Error = d.Err.Error()
		}
		res.Outcomes[line.Outcome]++
		res.Lines = append(res.Lines, line)
	}
	res.Next = did.Next
	return res, kind(err)
}
