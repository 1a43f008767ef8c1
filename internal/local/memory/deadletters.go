package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// DeadLetters keeps dead letters.
type DeadLetters struct {
	shelf
	letters  map[string]deadletter.Facts
	messages map[string]*deadMessage // by hash
}

// deadMessage is what the dead letters of one message share.
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

// The rooms of dead letters, by id, and of their messages, by hash.
const (
	roomLetters  = "dead letter"
	roomMessages = "dead message"
)

type keptLetter struct {
	deadletter.Facts
	Key []byte // a packed one is not UTF-8
}

type keptMessage struct {
	Body       []byte // byte for byte
	Attributes map[string]queue.Attribute
}

// Keep goes on from the dead letters that were kept, and keeps them from now on. Call it before any
// use.
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

// set changes a dead letter. The caller holds the lock.
func (s *DeadLetters) set(f deadletter.Facts) {
	s.letters[f.ID] = f
	s.keep.Put(roomLetters, f.ID, keptLetter{f, []byte(f.Key)})
}

// Park keeps the dead letter. One that is there already takes the new facts and keeps its message,
// its redrives and its first error.
func (s *DeadLetters) Park(ctx context.Context, l deadletter.Letter) (deadletter.Parking, error) {
	if l.ID == "" {
		return "", fmt.Errorf("park dead letter: the id is empty")
	}
	f := l.Facts
	f.State = deadletter.Parked
	if f.Hash == "" {
		f.Hash = deadletter.Hash(l.Body, l.Attributes)
	}
	leave, err := s.change(ctx, "park dead letter")
	if err != nil {
		return "", err
	}
	defer leave()
	parking := deadletter.Fresh
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
	return parking, nil
}

// Get returns a copy.
func (s *DeadLetters) Get(ctx context.Context, id string) (deadletter.Letter, bool, error) {
	leave, err := s.look(ctx, "get dead letter")
	if err != nil {
		return deadletter.Letter{}, false, err
	}
	defer leave()
	f, ok := s.letters[id]
	if !ok {
		return deadletter.Letter{}, false, nil
	}
	m := s.messages[f.Hash]
	return deadletter.Letter{Facts: f, Body: m.body, Attributes: maps.Clone(m.attrs)}, true, nil
}

// Message looks the dead letters of a message up.
func (s *DeadLetters) Message(ctx context.Context, hash string) ([]deadletter.Facts, error) {
	leave, err := s.look(ctx, "list the dead letters of a message")
	if err != nil {
		return nil, err
	}
	defer leave()
	var all []deadletter.Facts
	if m := s.messages[hash]; m != nil {
		for id := range m.ids {
			all = append(all, s.letters[id])
		}
	}
	slices.SortFunc(all, deadletter.ByPosition)
	return all, nil
}

// List sorts by when the dead letters died, then by id; the cursor is where the last one stood.
func (s *DeadLetters) List(ctx context.Context, f deadletter.Filter, cursor string, limit int) ([]deadletter.Facts,
	string, error,
) {
	leave, err := s.look(ctx, "list dead letters")
	if err != nil {
		return nil, "", err
	}
	defer leave()
	page, next, err := pageOf(maps.Values(s.letters), f.Matches, cursor, limit,
		func(f deadletter.Facts) position { return position{f.Died, f.ID} })
	if err != nil {
		return nil, "", fmt.Errorf("list dead letters: %w", err)
	}
	return page, next, nil
}

// Parked counts.
func (s *DeadLetters) Parked(ctx context.Context, forgotten time.Time, atMost int) (n int, more bool, err error) {
	leave, err := s.look(ctx, "count dead letters")
	if err != nil {
		return 0, false, err
	}
	defer leave()
	for _, l := range s.letters {
		if l.State == deadletter.Redriven && l.RedrivenAt.After(forgotten) {
			continue
		}
		if n == atMost {
			return n, true, nil
		}
		n++
	}
	return n, false, nil
}

// MarkRedriven counts a redrive of a dead letter that is there.
func (s *DeadLetters) MarkRedriven(ctx context.Context, id string, at time.Time, auto bool) error {
	leave, err := s.change(ctx, "mark dead letter")
	if err != nil {
		return err
	}
	defer leave()
	l, ok := s.letters[id]
	if !ok {
		return fmt.Errorf("mark dead letter %s: it does not exist", id)
	}
	l.State, l.RedrivenAt = deadletter.Redriven, at
	l.Redrives++
	if auto {
		l.Auto++
	}
	s.set(l)
	return nil
}

// Drop deletes the dead letter, if it is there.
func (s *DeadLetters) Drop(ctx context.Context, id string) error {
	leave, err := s.change(ctx, "drop dead letter")
	if err != nil {
		return err
	}
	defer leave()
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
}
