// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// DeadLetters stores dead letters.
type DeadLetters struct {
	shelf
	letters  map[string]deadletter.Facts
	messages map[string]*deadMessage // by the hash of the message
}

// deadMessage is the part that all dead letters of one message share.
type deadMessage struct {
	body  string
	attrs map[string]queue.Attribute
	ids   map[string]bool
}

var _ deadletter.Store = (*DeadLetters)(nil)

// NewDeadLetters returns an empty store.
func NewDeadLetters() *DeadLetters {
	return &DeadLetters{
		shelf: shelf{keep: forgetful{}}, letters: map[string]deadletter.Facts{}, messages: map[string]*deadMessage{},
	}
}

// The rooms of a Keeper for dead letters, by id, and for their messages, by hash.
const (
	roomLetters  = "dead letter"
	roomMessages = "dead message"
)

type keptLetter struct {
	deadletter.Facts
	Key []byte // as bytes, because a packed key is not UTF-8
}

type keptMessage struct {
	Body       []byte // as bytes, because a body may not be UTF-8
	Attributes map[string]queue.Attribute
}

// Keep restores the dead letters that the Keeper has stored. From then on, the store stores all
// changes in the Keeper. Call Keep before any other method.
func (s *DeadLetters) Keep(k Keeper) error {
	s.keep = k
	err := restore(k, roomMessages, func(hash string, m keptMessage) error {
		s.messages[hash] = &deadMessage{string(m.Body), m.Attributes, map[string]bool{}}
		return nil
	})
	if err != nil {
		return err
	}
	return restore(k, roomLetters, func(id string, l keptLetter) error {
		l.Facts.Key = shard.OrderKey(l.Key)
		m := s.messages[l.Hash]
		if m == nil {
			return fmt.Errorf("nothing has its message")
		}
		m.ids[id] = true
		s.letters[id] = l.Facts
		return nil
	})
}

// set stores a dead letter. The caller holds the lock.
func (s *DeadLetters) set(f deadletter.Facts) {
	s.letters[f.ID] = f
	s.keep.Put(roomLetters, f.ID, keptLetter{f, []byte(f.Key)})
}

// Park stores a dead letter. If a dead letter with the same id exists, it gets the new facts, but
// keeps its redrives and its first error.
func (s *DeadLetters) Park(ctx context.Context, l deadletter.Letter) (parking deadletter.Parking, err error) {
	if l.ID == "" {
		return "", fmt.Errorf("park dead letter: the id is empty")
	}
	f := l.Facts
	f.State = deadletter.Parked
	if f.Hash == "" {
		f.Hash = deadletter.Hash(l.Body, l.Attributes)
	}
	err = s.change(ctx, "park dead letter", func() error {
		parking = deadletter.Fresh
		if old, known := s.letters[l.ID]; known {
			parking = deadletter.Again
			if f.Hash != old.Hash {
				parking = deadletter.Other
				f = f.Under(old)
			}
			f.RedrivenAt, f.Redrives, f.Auto = old.RedrivenAt, old.Redrives, old.Auto
			f.FirstError = cmp.Or(old.FirstError, f.FirstError)
		}
		if s.messages[f.Hash] == nil {
			m := &deadMessage{l.Body, maps.Clone(l.Attributes), map[string]bool{}}
			s.messages[f.Hash] = m
			s.keep.Put(roomMessages, f.Hash, keptMessage{[]byte(m.body), m.attrs})
		}
		s.messages[f.Hash].ids[f.ID] = true
		s.set(f)
		return nil
	})
	return parking, err
}

// Get returns a copy of the dead letter, or false if it does not exist.
func (s *DeadLetters) Get(ctx context.Context, id string) (l deadletter.Letter, found bool, err error) {
	err = s.look(ctx, "get dead letter", func() error {
		if l.Facts, found = s.letters[id]; found {
			m := s.messages[l.Hash]
			l.Body, l.Attributes = m.body, maps.Clone(m.attrs)
		}
		return nil
	})
	return l, found, err
}

// Message returns all dead letters of the message with the given hash.
func (s *DeadLetters) Message(ctx context.Context, hash string) (all []deadletter.Facts, err error) {
	err = s.look(ctx, "list the dead letters of a message", func() error {
		if m := s.messages[hash]; m != nil {
			for id := range m.ids {
				all = append(all, s.letters[id])
			}
		}
		return nil
	})
	slices.SortFunc(all, deadletter.ByPosition)
	return all, err
}

// List returns dead letters sorted by the time of death, then by id. The cursor is the position of
// the last dead letter of a page.
func (s *DeadLetters) List(ctx context.Context, f deadletter.Filter, cursor string, limit int) (
	page []deadletter.Facts, next string, err error,
) {
	err = s.look(ctx, "list dead letters", func() error {
		page, next, err = pageOf(maps.Values(s.letters), f.Matches, cursor, limit,
			func(f deadletter.Facts) position { return position{f.Died, f.ID} })
		return err
	})
	return page, next, err
}

// Parked counts the dead letters that are parked, and those that were redriven at or before the
// time forgotten.
func (s *DeadLetters) Parked(ctx context.Context, forgotten time.Time, atMost int) (n int, more bool, err error) {
	err = s.look(ctx, "count dead letters", func() error {
		for _, l := range s.letters {
			if l.State != deadletter.Redriven || !l.RedrivenAt.After(forgotten) {
				n++
			}
		}
		return nil
	})
	return min(n, atMost), n > atMost, err
}

// MarkRedriven records that an existing dead letter was redriven.
func (s *DeadLetters) MarkRedriven(ctx context.Context, id string, at time.Time, auto bool) error {
	return s.change(ctx, "mark dead letter "+id, func() error {
		l, ok := s.letters[id]
		if !ok {
			return errors.New("it does not exist")
		}
		l.State, l.RedrivenAt = deadletter.Redriven, at
		l.Redrives++
		if auto {
			l.Auto++
		}
		s.set(l)
		return nil
	})
}

// Drop deletes the dead letter, if it exists.
func (s *DeadLetters) Drop(ctx context.Context, id string) error {
	return s.change(ctx, "drop dead letter", func() error {
		if f, ok := s.letters[id]; ok {
			m := s.messages[f.Hash]
			if delete(m.ids, id); len(m.ids) == 0 {
				delete(s.messages, f.Hash)
				s.keep.Delete(roomMessages, f.Hash)
			}
			delete(s.letters, id)
			s.keep.Delete(roomLetters, id)
		}
		return nil
	})
}
