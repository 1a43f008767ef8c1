// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"
)

// Point contains the outcomes of events in one step, such as a second.
type Point struct {
	At         time.Time `json:"at"` // when the step began
	Events     int       `json:"events"`
	Written    int       `json:"written"` // including deleted
	Unchanged  int       `json:"unchanged"`
	Superseded int       `json:"superseded"`
	Stale      int       `json:"stale"` // including duplicates
	Dead       int       `json:"dead"`
	// quantile of the freshness, perhaps from a sample of the writes; 0 without a write
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
}

// steps is how many steps are kept. sample is how many writes of a step are kept to compute
// quantiles.
const (
	steps  = 600
	sample = 128
)

// recent contains the latest steps, in a ring buffer.
type recent struct {
	step  time.Duration
	slots [steps]slot
}

type slot struct {
	n     int64 // the number of the step, counted from 1970
	point Point
	fresh []time.Duration
	seen  int
}

// at returns the slot of a time, or nil if a later step already uses that slot.
func (r *recent) at(t time.Time) *slot {
	n := t.UnixNano() / int64(r.step)
	s := &r.slots[n%steps]
	switch {
	case s.n > n:
		return nil // the clock was set back by the length of the ring buffer
	case s.n < n:
		*s = slot{n: n, fresh: s.fresh[:0]}
	}
	return s
}

func (r *recent) arrived(t time.Time, events int) {
	if s := r.at(t); s != nil {
		s.point.Events += events
	}
}

func (r *recent) ended(t time.Time, how end) {
	s := r.at(t)
	if s == nil {
		return
	}
	switch how {
	case endWritten, endDeleted:
		s.point.Written++
	case endUnchanged:
		s.point.Unchanged++
	case endSuperseded:
		s.point.Superseded++
	case endStale, endDuplicate:
		s.point.Stale++
	case endDead:
		s.point.Dead++
	}
}

func (r *recent) freshness(t time.Time, d time.Duration) {
	s := r.at(t)
	if s == nil {
		return
	}
	if s.seen++; len(s.fresh) < sample {
		s.fresh = append(s.fresh, d)
		return
	}
	s.fresh[s.seen*7%sample] = d
}

// Recent returns the latest steps with events, oldest first. With steps of a second, the result
// covers ten minutes.
func (l *Ledger) Recent() []Point {
	l.mu.Lock()
	defer l.mu.Unlock()
	points := []Point{}
	for i := range l.recent.slots {
		s := &l.recent.slots[i]
		if s.n == 0 {
			continue
		}
		p := s.point
		p.At = time.Unix(0, s.n*int64(l.recent.step)).UTC()
		if n := len(s.fresh); n > 0 {
			sorted := slices.Sorted(slices.Values(s.fresh))
			p.P50, p.P99 = sorted[(n-1)/2], sorted[(n*99+99)/100-1]
		}
		points = append(points, p)
	}
	slices.SortFunc(points, func(a, b Point) int { return a.At.Compare(b.At) })
	return points
}
