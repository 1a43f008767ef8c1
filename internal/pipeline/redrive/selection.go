// SPDX-License-Identifier: Apache-2.0

package redrive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/seam/deadletter"
)

// page is how many facts List reads at a time.
const page = 500

// ErrFilter says that a selection is invalid, or that it is empty and All is not set.
var ErrFilter = errors.New("filter")

// Selection selects the dead letters for a command.
type Selection struct {
	deadletter.Filter
	ID string // selects one dead letter; not allowed with a filter
}

// Validate returns an error if the selection is invalid. The error uses the words of the command
// line.
func (s Selection) Validate() error {
	switch {
	case s.ID != "" && s.Filter != (deadletter.Filter{}):
		return fmt.Errorf("%w: an id and a filter exclude each other", ErrFilter)
	case s.Reason != "" && !s.Reason.Known():
		return fmt.Errorf("%w: reason %q is unknown; want one of %s", ErrFilter, s.Reason, deadletter.Reasons())
	case s.State != "" && s.State != deadletter.Parked && s.State != deadletter.Redriven:
		return fmt.Errorf("%w: state %q is unknown; want %s or %s", ErrFilter, s.State, deadletter.Parked,
			deadletter.Redriven)
	case !s.After.IsZero() && !s.Before.IsZero() && !s.After.Before(s.Before):
		return fmt.Errorf("%w: after (%s) must be earlier than before (%s)", ErrFilter, s.After.Format(time.RFC3339),
			s.Before.Format(time.RFC3339))
	}
	if s.Collection != "" {
		if err := s.Collection.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrFilter, err)
		}
	}
	return nil
}

// matches reports whether a page that was read at now could have the dead letter.
func (s Selection) matches(f deadletter.Facts, now time.Time, retention time.Duration) bool {
	filter := s.Filter
	filter.State = ""
	return filter.Matches(f) && (s.State == "" || f.Shown(now, retention) == s.State)
}

// until limits a selection to dead letters that died at now or before.
func (s Selection) until(now time.Time) Selection {
	if end := now.Add(time.Microsecond); s.Before.IsZero() || s.Before.After(end) {
		s.Before = end
	}
	return s
}

// List calls f with the facts of every selected dead letter, oldest first, until f returns an
// error. The state in the facts is the state that operators see. List skips dead letters that die
// after the call began. So a dead letter that dies again is not listed twice. The number of dead
// letters is not limited.
func (d *Service) List(ctx context.Context, s Selection, f func(deadletter.Facts) error) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.ID != "" {
		l, err := d.Show(ctx, s.ID)
		if err != nil {
			return err
		}
		return f(l.Facts)
	}
	s = s.until(d.Clock.Now())
	// Read page by page, so that memory does not grow with the number of dead letters.
	for cursor := ""; ; {
		found, next, err := d.page(ctx, s, cursor, page)
		if err != nil {
			return err
		}
		for _, facts := range found {
			if err := f(facts); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

// maxPages is how many pages of the store Page reads at most, if the filter matches few dead
// letters.
const maxPages = 10

// Page returns up to limit dead letters of a selection without an id, oldest first. It also returns
// the cursor of the next call, which is empty at the end. If the filter matches few dead letters, a
// page may be short or empty before the end.
func (d *Service) Page(ctx context.Context, s Selection, cursor string, limit int) ([]deadletter.Facts, string, error) {
	if err := s.Validate(); err != nil {
		return nil, "", err
	}
	return d.pages(ctx, s.until(d.Clock.Now()), cursor, limit)
}

// pages returns a page as Page does. The selection is valid and has its end.
func (d *Service) pages(ctx context.Context, s Selection, cursor string, limit int) (
	all []deadletter.Facts, next string, err error,
) {
	for range maxPages {
		found, next, err := d.page(ctx, s, cursor, limit-len(all))
		if err != nil {
			return nil, "", err
		}
		all, cursor = append(all, found...), next
		if len(all) >= limit || cursor == "" {
			break
		}
	}
	return all, cursor, nil
}

// page returns the dead letters in one page of the store that match the selection.
func (d *Service) page(ctx context.Context, s Selection, cursor string, limit int) (
	found []deadletter.Facts, next string, err error,
) {
	now, retention := d.Clock.Now(), d.Config.Queues.DeadLetterRetention
	filter := s.Filter
	filter.State = "" // applied below, because operators see another state than the stored one
	err = d.try(ctx, func() (err error) {
		found, next, err = d.Letters.List(ctx, filter, cursor, limit)
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list dead letters: %w", err)
	}
	shown := found[:0]
	for _, facts := range found {
		if facts.State = facts.Shown(now, retention); s.State == "" || facts.State == s.State {
			shown = append(shown, facts)
		}
	}
	return shown, next, nil
}
