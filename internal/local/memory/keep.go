package memory

import (
	"encoding/json"
	"fmt"
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
