package memory

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// Schedule keeps events that are not due yet.
type Schedule struct {
	keep Keeper

	mu    sync.Mutex
	items map[string]schedule.Item
}

var _ schedule.Store = (*Schedule)(nil)

// NewSchedule returns an empty store.
func NewSchedule() *Schedule { return &Schedule{keep: forgetful{}, items: map[string]schedule.Item{}} }

// roomItems is the room of scheduled events, by id.
const roomItems = "scheduled"

type keptItem struct {
	schedule.Item
	Key []byte // a packed one is not UTF-8
}

// Keep goes on from the events that were kept, and keeps them from now on. Call it before any use.
func (s *Schedule) Keep(k Keeper) error {
	s.keep = k
	return restore(k, roomItems, func(id string, it keptItem) error {
		it.Item.Key = shard.OrderKey(it.Key)
		s.items[id] = it.Item
		return nil
	})
}

// Put keeps the item in place of one with the same id.
func (s *Schedule) Put(ctx context.Context, it schedule.Item) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("put scheduled event: %w", err)
	}
	if it.ID == "" {
		return fmt.Errorf("put scheduled event: the id is empty")
	}
	it.Attributes = maps.Clone(it.Attributes)
	defer s.keep.Flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[it.ID] = it
	s.keep.Put(roomItems, it.ID, keptItem{it, []byte(it.Key)})
	return nil
}

// Due sorts by when the items are due, then by id; the cursor is where the last one stood.
func (s *Schedule) Due(ctx context.Context, until time.Time, cursor string, limit int) ([]schedule.Item, string,
	error,
) {
	if err := ctx.Err(); err != nil {
		return nil, "", fmt.Errorf("list scheduled events: %w", err)
	}
	return s.page(cursor, limit, func(it schedule.Item) (schedule.Item, bool) {
		it.Attributes = maps.Clone(it.Attributes)
		return it, !it.NotBefore.After(until)
	})
}

// List sorts as Due does.
func (s *Schedule) List(ctx context.Context, doc shard.DocID, cursor string, limit int) ([]schedule.Item, string,
	error,
) {
	if err := ctx.Err(); err != nil {
		return nil, "", fmt.Errorf("list scheduled events: %w", err)
	}
	return s.page(cursor, limit, func(it schedule.Item) (schedule.Item, bool) {
		it.Body, it.Attributes = "", nil
		return it, doc == "" || it.Doc == doc
	})
}

func (s *Schedule) page(cursor string, limit int, keep func(schedule.Item) (schedule.Item, bool)) ([]schedule.Item,
	string, error,
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kept []schedule.Item
	for _, it := range s.items {
		if it, yes := keep(it); yes {
			kept = append(kept, it)
		}
	}
	page, next, err := pageOf(kept, cursor, limit,
		func(it schedule.Item) position { return position{it.NotBefore, it.ID} })
	if err != nil {
		return nil, "", fmt.Errorf("list scheduled events: %w", err)
	}
	return page, next, nil
}

// Get returns a copy.
func (s *Schedule) Get(ctx context.Context, id string) (schedule.Item, bool, error) {
	if err := ctx.Err(); err != nil {
		return schedule.Item{}, false, fmt.Errorf("get scheduled event: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	it, ok := s.items[id]
	it.Attributes = maps.Clone(it.Attributes)
	return it, ok, nil
}

// Delete removes the item.
func (s *Schedule) Delete(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete scheduled event: %w", err)
	}
	defer s.keep.Flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, id)
	s.keep.Delete(roomItems, id)
	return nil
}

// Len is the number of items.
func (s *Schedule) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}
