package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// Keeper stores the state of the stores for the next process. A store reports each change to it
// before a caller can see the change, and answers only after the change is stored. So a stored
// change never depends on one that is not stored.
type Keeper interface {
	// Each calls f with everything that the last process stored in a room, with its key.
	Each(room string, f func(key string, value []byte) error) error
	// Put and Delete are called under the store's lock. A value never changes afterwards.
	Put(room, key string, value any)
	Delete(room, key string)
	// Flush returns when all earlier changes are stored.
	Flush()
}

// forgetful stores nothing.
type forgetful struct{}

func (forgetful) Each(string, func(string, []byte) error) error { return nil }
func (forgetful) Put(string, string, any)                       {}
func (forgetful) Delete(string, string)                         {}
func (forgetful) Flush()                                        {}

// stores reports whether a Keeper stores what it gets. If not, no value needs to be made for it.
func stores(k Keeper) bool { return k != forgetful{} }

// restore calls take with each value that was stored in a room.
func restore[T any](k Keeper, room string, take func(key string, v T) error) error {
	return k.Each(room, func(key string, text []byte) error {
		var v T
		if err := json.Unmarshal(text, &v); err != nil {
			return fmt.Errorf("decode: %w", err)
		}
		return take(key, v)
	})
}

// shelf is the common part of these stores: one lock, under which changes are reported to the
// Keeper.
type shelf struct {
	keep Keeper
	mu   sync.Mutex
}

// look calls do under the lock, unless the context has ended. do must not change anything. Errors
// say what the call was doing.
func (s *shelf) look(ctx context.Context, doing string, do func() error) error {
	err := ctx.Err()
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		err = do()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// change calls do, which may put or delete. It returns once the Keeper has stored the change.
func (s *shelf) change(ctx context.Context, doing string, do func() error) error {
	defer s.keep.Flush()
	return s.look(ctx, doing, do)
}
