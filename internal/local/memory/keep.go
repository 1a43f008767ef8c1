package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// Keeper keeps what the stores of a process hold for the next process. A store tells it of each
// change before anybody can see that change, and waits until it is kept before it answers. So what
// is kept is at no time newer than something that is not.
type Keeper interface {
	// Each calls f with what the last process left in a room, by key.
	Each(room string, f func(key string, value []byte) error) error
	// Put and Delete are called under the store's lock. A value never changes afterwards.
	Put(room, key string, value any)
	Delete(room, key string)
	// Flush returns when all that was put before is kept.
	Flush()
}

// forgetful keeps nothing.
type forgetful struct{}

func (forgetful) Each(string, func(string, []byte) error) error { return nil }
func (forgetful) Put(string, string, any)                       {}
func (forgetful) Delete(string, string)                         {}
func (forgetful) Flush()                                        {}

// restore calls take with what was kept in a room.
func restore[T any](k Keeper, room string, take func(key string, v T) error) error {
	return k.Each(room, func(key string, text []byte) error {
		var v T
		if err := json.Unmarshal(text, &v); err != nil {
			return fmt.Errorf("decode: %w", err)
		}
		return take(key, v)
	})
}

// shelf is what the stores that are kept have in common: one lock, under which the Keeper is told.
type shelf struct {
	keep Keeper
	mu   sync.Mutex
}

// look calls do under the lock, unless the context has ended. do changes nothing. Errors say what
// the call was doing.
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

// change is look where do puts or deletes: it ends once that is kept.
func (s *shelf) change(ctx context.Context, doing string, do func() error) error {
	defer s.keep.Flush()
	return s.look(ctx, doing, do)
}
