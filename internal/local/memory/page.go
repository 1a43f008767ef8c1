// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pageOf returns one page of a list, sorted by position: up to limit items after the cursor for
// which keep returns true. pageOf also returns the cursor of the next page, which is empty after
// the last page.
func pageOf[T any](all iter.Seq[T], keep func(T) bool, cursor string, limit int, at func(T) position) (page []T,
	next string, err error,
) {
	after, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	if limit < 1 {
		return nil, "", fmt.Errorf("limit is %d, but must be at least 1", limit)
	}
	// page contains the first items and one more, which shows that there is a next page. Sorting
	// the whole list for each page would be too slow for a caller that reads all pages.
	for it := range all {
		place := at(it)
		if !keep(it) || place.compare(after) <= 0 || len(page) > limit && place.compare(at(page[limit])) > 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(page, place, func(other T, p position) int { return at(other).compare(p) })
		if page = slices.Insert(page, i, it); len(page) > limit+1 {
			page = page[:limit+1]
		}
	}
	if len(page) <= limit {
		return page, "", nil
	}
	return page[:limit], at(page[limit-1]).String(), nil
}

// position is a place in a list that is sorted by time, then by id. The zero position is before
// every item.
type position struct {
	at time.Time
	id string
}

func (p position) compare(q position) int {
	return cmp.Or(p.at.Compare(q.at), strings.Compare(p.id, q.id))
}

// String returns the position as a cursor, which [parseCursor] reads.
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
