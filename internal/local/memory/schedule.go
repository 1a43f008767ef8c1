// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// Schedule stores events that are not due yet.
type Schedule struct {
	shelf
	items map[string]schedule.Item
}

var _ schedule.Store = (*Schedule)(nil)

// NewSchedule returns an empty store.
func NewSchedule() *Schedule {
	return &Schedule{shelf: shelf{keep: forgetful{}}, items: map[string]schedule.Item{}}
}

// roomItems is the room of a Keeper for scheduled events, by id.
const roomItems = "scheduled"

type keptItem struct {
	schedule.Item
	Key []byte // as bytes, because a packed key is not UTF-8
}

// Keep restores the events that the Keeper has stored. From then on, the store stores all changes
// in the Keeper. Call Keep before any other method.
func (s *Schedule) Keep(k Keeper) error {
	s.keep = k
	return restore(k, roomItems, func(id string, it keptItem) error {
		it.Item.Key = shard.OrderKey(it.Key)
		s.items[id] = it.Item
		return nil
	})
}

// Put stores the item. Put replaces an item with the same id.
func (s *Schedule) Put(ctx context.Context, it schedule.Item) error {
	if it.ID == "" {
		return fmt.Errorf("put scheduled event: the id is empty")
	}
	it.Attributes = maps.Clone(it.Attributes)
	return s.change(ctx, "put scheduled event", func() error {
		s.items[it.ID] = it
		s.keep.Put(roomItems, it.ID, keptItem{it, []byte(it.Key)})
		return nil
	})
}

// Due returns items that are due until the given time, sorted by the time when they are due, then
// by id. The cursor is the position of the last item of a page.
func (s *Schedule) Due(ctx context.Context, until time.Time, cursor string, limit int) ([]schedule.Item, string,
	error,
) {
	page, next, err := s.page(ctx, cursor, limit, func(it schedule.Item) bool { return !it.NotBefore.After(until) })
	for i := range page {
		page[i].Attributes = maps.Clone(page[i].Attributes)
	}
	return page, next, err
}

// List returns items of one document, or of all if doc is empty, in the order of Due. The items
// have no body and no attributes.
func (s *Schedule) List(ctx context.Context, doc shard.DocID, cursor string, limit int) ([]schedule.Item, string,
	error,
) {
	page, next, err := s.page(ctx, cursor, limit, func(it schedule.Item) bool { return doc == "" || it.Doc == doc })
	for i := range page {
		page[i].Body, page[i].Attributes = "", nil
	}
	return page, next, err
}

func (s *Schedule) page(ctx context.Context, cursor string, limit int, keep func(schedule.Item) bool) (
	page []schedule.Item, next string, err error,
) {
	err = s.look(ctx, "list scheduled events", func() error {
		page, next, err = pageOf(maps.Values(s.items), keep, cursor, limit,
			func(it schedule.Item) position { return position{it.NotBefore, it.ID} })
		return err
	})
	return page, next, err
}

// Get returns a copy of the item, or false if it does not exist.
func (s *Schedule) Get(ctx context.Context, id string) (it schedule.Item, found bool, err error) {
	err = s.look(ctx, "get scheduled event", func() error {
		it, found = s.items[id]
		it.Attributes = maps.Clone(it.Attributes)
		return nil
	})
	return it, found, err
}

// Delete deletes the item.
func (s *Schedule) Delete(ctx context.Context, id string) error {
	return s.change(ctx, "delete scheduled event", func() error {
		delete(s.items, id)
		s.keep.Delete(roomItems, id)
		return nil
	})
}

// Len returns the number of items.
func (s *Schedule) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}
