// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// Keeper stores the contents of the stores in this package for the next process. A store passes
// each change to the Keeper before a caller can see the change. The store answers only after the
// Keeper has stored the change. So a stored change never depends on a change that is not stored. A
// room is a set of keys with their values, such as the bodies of the messages of one queue.
type Keeper interface {
	// Each calls f with every key and value that the last process stored in a room.
	Each(room string, f func(key string, value []byte) error) error
	// A store calls Put and Delete under its lock. A store never changes a value after Put.
	Put(room, key string, value any)
	Delete(room, key string)
	// Flush returns when all earlier changes are stored.
	Flush()
}

// forgetful is a Keeper that stores nothing.
type forgetful struct{}

func (forgetful) Each(string, func(string, []byte) error) error { return nil }
func (forgetful) Put(string, string, any)                       {}
func (forgetful) Delete(string, string)                         {}
func (forgetful) Flush()                                        {}

// stores reports whether a Keeper stores values. If the Keeper stores nothing, a store need not
// create a value for the Keeper.
func stores(k Keeper) bool { return k != forgetful{} }

// restore calls take with each key and value that the Keeper has stored in a room.
func restore[T any](k Keeper, room string, take func(key string, v T) error) error {
	return k.Each(room, func(key string, text []byte) error {
		var v T
		if err := json.Unmarshal(text, &v); err != nil {
			return fmt.Errorf("decode: %w", err)
		}
		return take(key, v)
	})
}

// shelf is the common part of the stores in this package: a Keeper, and a lock that a store holds
// while it passes changes to the Keeper.
type shelf struct {
	keep Keeper
	mu   sync.Mutex
}

// look calls do under the lock, unless the context has ended. do must not change the store. The
// text doing says in errors what the caller was doing.
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

// change calls do under the lock. do may change the store. change returns after the Keeper has
// stored all changes.
func (s *shelf) change(ctx context.Context, doing string, do func() error) error {
	defer s.keep.Flush()
	return s.look(ctx, doing, do)
}
