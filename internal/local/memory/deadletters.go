package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
)

// DeadLetters keeps dead letters.
type DeadLetters struct {
	mu      sync.Mutex
	letters map[string]deadletter.Letter
}

var _ deadletter.Store = (*DeadLetters)(nil)

// NewDeadLetters returns an empty store.
func NewDeadLetters() *DeadLetters { return &DeadLetters{letters: map[string]deadletter.Letter{}} }

// Park keeps the dead letter. One that is there already takes the new facts and keeps its redrives
// and its first error.
func (s *DeadLetters) Park(ctx context.Context, l deadletter.Letter) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("park dead letter: %w", err)
	}
	if l.ID == "" {
		return false, fmt.Errorf("park dead letter: the id is empty")
	}
	l.State, l.Attributes = deadletter.Parked, maps.Clone(l.Attributes)
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.letters[l.ID]
	if known {
		l.RedrivenAt, l.Redrives, l.Auto = old.RedrivenAt, old.Redrives, old.Auto
		l.FirstError = cmp.Or(old.FirstError, l.FirstError)
	}
	s.letters[l.ID] = l
	return !known, nil
}

// Get returns a copy.
func (s *DeadLetters) Get(ctx context.Context, id string) (deadletter.Letter, bool, error) {
	if err := ctx.Err(); err != nil {
		return deadletter.Letter{}, false, fmt.Errorf("get dead letter: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.letters[id]
	l.Attributes = maps.Clone(l.Attributes)
	return l, ok, nil
}

// List sorts by when the dead letters died, then by id; the cursor is where the last one stood.
func (s *DeadLetters) List(ctx context.Context, f deadletter.Filter, cursor string, limit int) ([]deadletter.Facts,
	string, error,
) {
	if err := ctx.Err(); err != nil {
		return nil, "", fmt.Errorf("list dead letters: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []deadletter.Facts
	for _, l := range s.letters {
		if f.Matches(l.Facts) {
			all = append(all, l.Facts)
		}
	}
	page, next, err := pageOf(all, cursor, limit, func(f deadletter.Facts) position { return position{f.Died, f.ID} })
	if err != nil {
		return nil, "", fmt.Errorf("list dead letters: %w", err)
	}
	return page, next, nil
}

// MarkRedriven counts a redrive of a dead letter that is there.
func (s *DeadLetters) MarkRedriven(ctx context.Context, id string, at time.Time, auto bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("mark dead letter: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.letters[id]
	if !ok {
		return fmt.Errorf("mark dead letter %s: it does not exist", id)
	}
	l.State, l.RedrivenAt = deadletter.Redriven, at
	l.Redrives++
	if auto {
		l.Auto++
	}
	s.letters[id] = l
	return nil
}

// Drop deletes the dead letter, if it is there.
func (s *DeadLetters) Drop(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("drop dead letter: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.letters, id)
	return nil
}
