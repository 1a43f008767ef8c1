package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
)

// Letters keeps dead letters.
type Letters struct {
	mu      sync.Mutex
	letters map[string]deadletter.Letter
}

var _ deadletter.Store = (*Letters)(nil)

// NewLetters returns an empty store.
func NewLetters() *Letters { return &Letters{letters: map[string]deadletter.Letter{}} }

// Park keeps the letter. One that is there already takes the new facts and keeps its redrives and
// its first error.
func (s *Letters) Park(ctx context.Context, l deadletter.Letter) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("park letter: %w", err)
	}
	if l.ID == "" {
		return false, fmt.Errorf("park letter: it has no id")
	}
	l.State, l.Attributes = deadletter.Parked, maps.Clone(l.Attributes)
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.letters[l.ID]
	if known {
		l.RedrivenAt, l.Redrives, l.Auto = old.RedrivenAt, old.Redrives, old.Auto
		l.FirstError = cmp.Or(old.FirstError, l.FirstError)
	}
	s.letters[l.ID] = l
	return !known, nil
}

// Get returns a copy.
func (s *Letters) Get(ctx context.Context, id string) (deadletter.Letter, bool, error) {
	if err := ctx.Err(); err != nil {
		return deadletter.Letter{}, false, fmt.Errorf("get letter: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.letters[id]
	l.Attributes = maps.Clone(l.Attributes)
	return l, ok, nil
}

// List sorts by when the letters died, then by id; the cursor is where the last one stood.
func (s *Letters) List(ctx context.Context, f deadletter.Filter, cursor string, limit int) ([]deadletter.Facts, string,
	error,
) {
	if err := ctx.Err(); err != nil {
		return nil, "", fmt.Errorf("list letters: %w", err)
	}
	after, err := parseCursor(cursor)
	if err != nil {
		return nil, "", fmt.Errorf("list letters: %w", err)
	}
	if limit < 1 {
		return nil, "", fmt.Errorf("list letters: limit %d is not positive", limit)
	}
	var all []deadletter.Facts
	s.mu.Lock()
	for id, l := range s.letters {
		if f.Matches(l.Facts) && (position{l.Died, id}).compare(after) > 0 {
			all = append(all, l.Facts)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b deadletter.Facts) int {
		return position{a.Died, a.ID}.compare(position{b.Died, b.ID})
	})
	if len(all) <= limit {
		return all, "", nil
	}
	last := all[limit-1]
	return all[:limit], position{last.Died, last.ID}.String(), nil
}

// MarkRedriven counts a redrive of a letter that is there.
func (s *Letters) MarkRedriven(ctx context.Context, id string, at time.Time, auto bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("mark letter: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.letters[id]
	if !ok {
		return fmt.Errorf("mark letter %s: it is not there", id)
	}
	l.State, l.RedrivenAt = deadletter.Redriven, at
	l.Redrives++
	if auto {
		l.Auto++
	}
	s.letters[id] = l
	return nil
}

// Drop deletes the letter; dropping what is not there is no error.
func (s *Letters) Drop(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("drop letter: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.letters, id)
	return nil
}

// position is a place in a list that is sorted by time, then by id. The zero position is before
// everything.
type position struct {
	at time.Time
	id string
}

func (p position) compare(q position) int {
	return cmp.Or(p.at.Compare(q.at), strings.Compare(p.id, q.id))
}

// String is the cursor that [parseCursor] reads.
func (p position) String() string {
	return strconv.FormatInt(p.at.Unix(), 10) + "." + strconv.Itoa(p.at.Nanosecond()) + ":" + p.id
}

func parseCursor(s string) (position, error) {
	if s == "" {
		return position{}, nil
	}
	var sec, nsec int64
	at, id, ok := strings.Cut(s, ":")
	if _, err := fmt.Sscanf(at, "%d.%d", &sec, &nsec); !ok || err != nil {
		return position{}, fmt.Errorf("cursor %q is not of this list", s)
	}
	return position{time.Unix(sec, nsec), id}, nil
}
