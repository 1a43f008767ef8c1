package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/schedule"
)

// Schedule keeps events that are not due yet.
type Schedule struct {
	mu    sync.Mutex
	items map[string]schedule.Item
}

var _ schedule.Store = (*Schedule)(nil)

// NewSchedule returns an empty store.
func NewSchedule() *Schedule { return &Schedule{items: map[string]schedule.Item{}} }

// Put keeps the item in place of one with the same id.
func (s *Schedule) Put(ctx context.Context, it schedule.Item) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("put scheduled event: %w", err)
	}
	if it.ID == "" {
		return fmt.Errorf("put scheduled event: it has no id")
	}
	it.Attributes = maps.Clone(it.Attributes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[it.ID] = it
	return nil
}

// Due sorts by when the items are due, then by id; the cursor is where the last one stood.
func (s *Schedule) Due(ctx context.Context, until time.Time, cursor string, limit int) ([]schedule.Item, string,
	error,
) {
	if err := ctx.Err(); err != nil {
		return nil, "", fmt.Errorf("list scheduled events: %w", err)
	}
	after, err := parseCursor(cursor)
	if err != nil {
		return nil, "", fmt.Errorf("list scheduled events: %w", err)
	}
	if limit < 1 {
		return nil, "", fmt.Errorf("list scheduled events: limit %d is not positive", limit)
	}
	var due []schedule.Item
	s.mu.Lock()
	for id, it := range s.items {
		if !it.NotBefore.After(until) && (position{it.NotBefore, id}).compare(after) > 0 {
			it.Attributes = maps.Clone(it.Attributes)
			due = append(due, it)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(due, func(a, b schedule.Item) int {
		return position{a.NotBefore, a.ID}.compare(position{b.NotBefore, b.ID})
	})
	if len(due) <= limit {
		return due, "", nil
	}
	last := due[limit-1]
	return due[:limit], position{last.NotBefore, last.ID}.String(), nil
}

// Delete removes the item.
func (s *Schedule) Delete(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete scheduled event: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, id)
	return nil
}

// Len is the number of items.
func (s *Schedule) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}
