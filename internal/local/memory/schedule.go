package memory

import (
	"context"
	"fmt"
	"maps"
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
		return fmt.Errorf("put scheduled event: the id is empty")
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
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []schedule.Item
	for _, it := range s.items {
		if !it.NotBefore.After(until) {
			it.Attributes = maps.Clone(it.Attributes)
			due = append(due, it)
		}
	}
	page, next, err := pageOf(due, cursor, limit,
		func(it schedule.Item) position { return position{it.NotBefore, it.ID} })
	if err != nil {
		return nil, "", fmt.Errorf("list scheduled events: %w", err)
	}
	return page, next, nil
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
