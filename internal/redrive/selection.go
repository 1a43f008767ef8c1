package redrive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
)

// page is how many facts are listed at a time.
const page = 100

// ErrFilter says that a filter cannot select anything, or would select everything where that has to
// be said.
var ErrFilter = errors.New("filter")

// Selection is which dead letters a command works on.
type Selection struct {
	deadletter.Filter
	ID string // one dead letter; the filter is not asked then
}

// Validate says what is wrong with the selection, in the words of the command line, or nil.
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
		return fmt.Errorf("%w: after %s lies not before %s", ErrFilter, s.After.Format(time.RFC3339),
			s.Before.Format(time.RFC3339))
	}
	if s.Collection != "" {
		if err := s.Collection.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrFilter, err)
		}
	}
	return nil
}

// matches reports whether List, called at that time, would name the dead letter or has named it.
func (s Selection) matches(f deadletter.Facts, now time.Time, retention time.Duration) bool {
	filter := s.Filter
	filter.State = ""
	return filter.Matches(f) && !f.Died.After(now) && (s.State == "" || f.Shown(now, retention) == s.State)
}

// List calls f with the facts of every dead letter that is selected, oldest first, until f returns
// an error. The state is the one that people see. Dead letters that die after the call began are
// left out, so that a dead letter that dies again is not met twice. There is no other limit.
func (d *Service) List(ctx context.Context, s Selection, f func(deadletter.Facts) error) error {
	if err := s.Validate(); err != nil {
		return err
	}
	now := d.Clock.Now()
	retention := d.Config.Queues.DeadLetterRetention
	if s.ID != "" {
		l, err := d.Show(ctx, s.ID)
		if err != nil {
			return err
		}
		return f(l.Facts)
	}
	filter := s.Filter
	filter.State = "" // as people see it, not as it is stored
	if end := now.Add(time.Microsecond); filter.Before.IsZero() || filter.Before.After(end) {
		filter.Before = end
	}
	// Page by page, so that memory does not grow with the number of dead letters.
	for cursor := ""; ; {
		var found []deadletter.Facts
		var next string
		err := d.try(ctx, func() (err error) {
			found, next, err = d.Letters.List(ctx, filter, cursor, page)
			return err
		})
		if err != nil {
			return fmt.Errorf("list dead letters: %w", err)
		}
		for _, facts := range found {
			facts.State = facts.Shown(now, retention)
			if s.State != "" && facts.State != s.State {
				continue
			}
			if err := f(facts); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}
