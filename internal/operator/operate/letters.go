// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// LetterFilter selects dead letters; zero fields select everything.
type LetterFilter struct {
	ID         string            `json:"id,omitempty"`
	Reason     deadletter.Reason `json:"reason,omitempty"`
	Collection shard.Collection  `json:"collection,omitempty"`
	Key        shard.DocID       `json:"key,omitempty"`
	After      time.Time         `json:"after,omitzero"`
	Before     time.Time         `json:"before,omitzero"`
	State      deadletter.State  `json:"state,omitempty"`
}

// LetterQuery asks for a page of dead letters.
type LetterQuery struct {
	LetterFilter
	Cursor string `json:"cursor,omitempty"` // Next of the page before; empty for the first page
	Limit  int    `json:"limit,omitempty"`  // how many at most, 1 to 1,000; 0 is 100
}

// LetterPage is a page of dead letters. A page may have fewer dead letters than asked for, even
// none, and still have a next page, because the filter skips dead letters.
type LetterPage struct {
	Letters []Letter `json:"dead_letters"`
	Next    string   `json:"next,omitempty"` // the cursor of the next page, empty at the end
}

// LetterGroups counts dead letters.
type LetterGroups struct {
	Groups []LetterGroup `json:"groups"`           // the largest first
	Capped bool          `json:"capped,omitempty"` // there are more than were counted
}

// LetterGroup counts the dead letters of one reason.
type LetterGroup struct {
	Reason   deadletter.Reason `json:"reason"`
	Parked   int               `json:"parked"`
	Redriven int               `json:"redriven"`
	Oldest   time.Time         `json:"oldest"` // when the first dead letter of the reason died
	Newest   time.Time         `json:"newest"` // when the last one died
}

// LetterOrder asks for one step with a selection of dead letters.
type LetterOrder struct {
	LetterFilter
	DryRun bool          `json:"dry_run,omitempty"`
	Force  bool          `json:"force,omitempty"` // also redrive dead letters that are too old to be judged
	All    bool          `json:"all,omitempty"`   // an empty selection means everything
	Rate   float64       `json:"rate,omitempty"`  // messages a second of the job, 0 for no limit
	From   redrive.Place `json:"from,omitzero"`   // LetterResult.Next of the step before
	Limit  int           `json:"limit,omitempty"` // how many at most, 1 to 100; 0 is 100
	By     string        `json:"by"`              // the operator, for the audit
}

// LetterResult says what a step did.
type LetterResult struct {
	Outcomes map[string]int `json:"outcomes"`
	Lines    []LetterLine   `json:"lines"`
	Next     *redrive.Place `json:"next,omitempty"` // nil at the end
}

// LetterLine is the outcome of one dead letter.
type LetterLine struct {
	Letter  Letter `json:"dead_letter"`
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
}

// Letter is a dead letter as people see it.
type Letter struct {
	ID         string                     `json:"id"`
	Key        shard.DocID                `json:"key,omitempty"`
	OrderKey   string                     `json:"order_key,omitempty"`
	Version    string                     `json:"version,omitempty"`
	Reason     deadletter.Reason          `json:"reason"`
	Detail     string                     `json:"detail"`
	State      deadletter.State           `json:"state"`
	Sink       string                     `json:"sink"`
	Lane       string                     `json:"lane"`
	MessageID  string                     `json:"message_id"`
	Sent       time.Time                  `json:"sent_at,omitzero"`
	Died       time.Time                  `json:"died_at,omitzero"`
	Refusals   int64                      `json:"refusals,omitempty"`
	FirstError string                     `json:"first_error,omitempty"`
	LastError  string                     `json:"last_error,omitempty"`
	Redriven   time.Time                  `json:"redriven_at,omitzero"`
	Redrives   int                        `json:"redrives,omitempty"`
	Auto       int                        `json:"auto_redrives,omitempty"`
	Body       string                     `json:"body,omitempty"` // not in lists
	Attributes map[string]queue.Attribute `json:"attributes,omitempty"`
	// Source is the source that decodes the message by the present settings. It is empty in lists.
	Source string `json:"source,omitempty"`
	// Became says what became of the dead letter after it was sent again, and BecameWhy says why. Both
	// are empty in lists, and as long as nothing is decided.
	Became    Became `json:"became,omitempty"`
	BecameWhy string `json:"became_why,omitempty"`
}

// letters lists, redrives and drops dead letters.
type letters struct {
	parked

	Sources *source.Set
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
func (o *letters) Letters(ctx context.Context, f LetterFilter) ([]Letter, error) {
	return o.list(ctx, o.selection(f))
}

// The default and the largest size of a page of dead letters.
const (
	pageSize    = 100
	maxPageSize = 1000
)

// LetterPage lists dead letters page by page.
func (o *letters) LetterPage(ctx context.Context, q LetterQuery) (LetterPage, error) {
	p := LetterPage{Letters: []Letter{}}
	limit, err := limited(q.Limit, pageSize, maxPageSize)
	if err != nil {
		return p, err
	}
	if q.ID != "" {
		list, err := o.Letters(ctx, q.LetterFilter)
		return LetterPage{Letters: list}, err
	}
	found, next, err := o.redrives.Page(ctx, o.selection(q.LetterFilter), q.Cursor, limit)
	for _, f := range found {
		p.Letters = append(p.Letters, asLetter(f))
	}
	p.Next = next
	return p, kind(err)
}

// errEnough stops a count at maxCount.
var errEnough = errors.New("enough")

// LetterGroups counts dead letters by reason.
func (o *letters) LetterGroups(ctx context.Context, f LetterFilter) (LetterGroups, error) {
	groups, n := map[deadletter.Reason]*LetterGroup{}, 0
	err := o.redrives.List(ctx, o.selection(f), func(l deadletter.Facts) error {
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
func (o *letters) Letter(ctx context.Context, id string) (Letter, error) {
	full, err := o.redrives.Show(ctx, id)
	if err != nil {
		if err = kind(err); errors.Is(err, ErrNotFound) {
			err = fmt.Errorf("%w: `lull dead list` names those that there are", err)
		}
		return Letter{}, err
	}
	l := asLetter(full.Facts)
	l.Body, l.Attributes = full.Body, full.Attributes
	l.Source = o.Sources.At(l.Sink).SourceOf(queue.Message{Body: full.Body, Attributes: full.Attributes})
	if full.State == deadletter.Redriven {
		l.Became, l.BecameWhy, err = o.became(ctx, full)
	}
	return l, kind(err)
}

// Redrive sends the next selected dead letters again.
func (o *letters) Redrive(ctx context.Context, r LetterOrder) (LetterResult, error) {
	return r.do(ctx, o.selection(r.LetterFilter), o.redrives.Redrive)
}

// Drop deletes the next selected dead letters for good.
func (o *letters) Drop(ctx context.Context, r LetterOrder) (LetterResult, error) {
	return r.do(ctx, o.selection(r.LetterFilter), o.redrives.Drop)
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
