package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pageOf sorts a list by where its items stand and returns the page behind the cursor, and the
// cursor of the next page: empty where there is none.
func pageOf[T any](all []T, cursor string, limit int, at func(T) position) (page []T, next string, err error) {
	after, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	if limit < 1 {
		return nil, "", fmt.Errorf("limit is %d, want at least 1", limit)
	}
	all = slices.DeleteFunc(all, func(it T) bool { return at(it).compare(after) <= 0 })
	slices.SortFunc(all, func(a, b T) int { return at(a).compare(at(b)) })
	if len(all) <= limit {
		return all, "", nil
	}
	return all[:limit], at(all[limit-1]).String(), nil
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
