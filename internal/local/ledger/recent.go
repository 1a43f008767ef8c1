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

// steps is how many steps are kept. A long step has longStep steps, and longSteps is how many
// long steps are kept. If a step is a second, the long steps are the minutes of a day. sample is
// how many writes of a step are kept to compute quantiles.
const (
	steps     = 600
	longStep  = 60
	longSteps = 24 * 60
	sample    = 128
)

// history contains the latest steps, and the latest long steps.
type history [2]recent

func newHistory(step time.Duration) history {
	return history{{step: step, slots: make([]slot, steps)}, {step: longStep * step, slots: make([]slot, longSteps)}}
}

func (h *history) arrived(t time.Time, events int) {
	for i := range h {
		h[i].arrived(t, events)
	}
}

func (h *history) ended(t time.Time, how end) {
	for i := range h {
		h[i].ended(t, how)
	}
}

func (h *history) freshness(t time.Time, d time.Duration) {
	for i := range h {
		h[i].freshness(t, d)
	}
}

// recent contains the latest steps of one length, in a ring buffer.
type recent struct {
	step  time.Duration
	slots []slot
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
	s := &r.slots[n%int64(len(r.slots))]
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
	s.point.ended(how, 1)
}

// ended adds n events with an outcome.
func (p *Point) ended(how end, n int) {
	switch how {
	case endWritten, endDeleted:
		p.Written += n
	case endUnchanged:
		p.Unchanged += n
	case endSuperseded:
		p.Superseded += n
	case endStale, endDuplicate:
		p.Stale += n
	case endDead:
		p.Dead += n
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
func (l *Ledger) Recent() []Point { return l.points(0) }

// Long returns the latest long steps with events, oldest first. With steps of a second, a long step
// is a minute, and the result covers a day.
func (l *Ledger) Long() []Point { return l.points(1) }

func (l *Ledger) points(of int) []Point {
	l.mu.Lock()
	defer l.mu.Unlock()
	points, r := []Point{}, &l.recent[of]
	for i := range r.slots {
		s := &r.slots[i]
		if s.n == 0 {
			continue
		}
		p := s.point
		p.At = time.Unix(0, s.n*int64(r.step)).UTC()
		if n := len(s.fresh); n > 0 {
			sorted := slices.Sorted(slices.Values(s.fresh))
			p.P50, p.P99 = sorted[(n-1)/2], sorted[(n*99+99)/100-1]
		}
		points = append(points, p)
	}
	slices.SortFunc(points, func(a, b Point) int { return a.At.Compare(b.At) })
	return points
}
