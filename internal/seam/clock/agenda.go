// SPDX-License-Identifier: Apache-2.0

package clock

import "time"

// Agenda is a priority queue of items. It returns the item that is due earliest first. Items that
// are due at the same moment are returned in the order in which they were added, so that a
// simulation can be repeated. The zero Agenda is empty. Only one goroutine may use an Agenda at a
// time.
type Agenda[T any] struct {
	heap  []entry[T]
	added uint64
}

type entry[T any] struct {
	at    time.Duration
	added uint64
	what  T
	place *Place
}

// Place is the position of an item in an agenda. The zero Place is in no agenda.
type Place struct{ n int }

// Add adds an item that is due at the moment at. If place is not nil, Add stores the item's
// position in it, so that [Agenda.Remove] finds the item.
func (a *Agenda[T]) Add(at time.Duration, what T, place *Place) {
	a.added++
	a.heap = append(a.heap, entry[T]{at, a.added, what, place})
	a.up(len(a.heap) - 1)
}

// First returns the item that is due next, and the moment when it is due. The item stays in the
// agenda.
func (a *Agenda[T]) First() (at time.Duration, what T, ok bool) {
	if len(a.heap) == 0 {
		return 0, what, false
	}
	return a.heap[0].at, a.heap[0].what, true
}

// Next removes and returns the item that is due next, and the moment when it is due.
func (a *Agenda[T]) Next() (at time.Duration, what T, ok bool) {
	at, what, ok = a.First()
	if ok {
		a.take(0)
	}
	return at, what, ok
}

// Due removes and returns the item that is due next, if that moment is not after now.
func (a *Agenda[T]) Due(now time.Duration) (what T, ok bool) {
	if len(a.heap) == 0 || a.heap[0].at > now {
		return what, false
	}
	what = a.heap[0].what
	a.take(0)
	return what, true
}

// Remove removes the item at a place. It does nothing if the agenda has no item there.
func (a *Agenda[T]) Remove(place *Place) {
	if place.n > 0 {
		a.take(place.n - 1)
	}
}

// take removes entry i.
func (a *Agenda[T]) take(i int) {
	if p := a.heap[i].place; p != nil {
		p.n = 0
	}
	last := len(a.heap) - 1
	moved := a.heap[last]
	a.heap[last] = entry[T]{}
	a.heap = a.heap[:last]
	if i < last {
		a.heap[i] = moved
		a.up(a.down(i))
	}
}

// children is how many entries of the heap have the same parent. With four, a heap has half the
// levels that it has with two, and an entry moves half as often.
const children = 4

// up moves entry i towards the front until the heap is in order.
func (a *Agenda[T]) up(i int) {
	e := a.heap[i]
	for i > 0 {
		parent := (i - 1) / children
		if !e.before(&a.heap[parent]) {
			break
		}
		a.set(i, a.heap[parent])
		i = parent
	}
	a.set(i, e)
}

// down moves entry i towards the end until the heap is in order, and returns its new index.
func (a *Agenda[T]) down(i int) int {
	e := a.heap[i]
	for {
		first := children*i + 1
		if first >= len(a.heap) {
			a.set(i, e)
			return i
		}
		child := first
		for other := first + 1; other < min(first+children, len(a.heap)); other++ {
			if a.heap[other].before(&a.heap[child]) {
				child = other
			}
		}
		if e.before(&a.heap[child]) {
			a.set(i, e)
			return i
		}
		a.set(i, a.heap[child])
		i = child
	}
}

// set stores e as entry i, and the index in the place of e.
func (a *Agenda[T]) set(i int, e entry[T]) {
	a.heap[i] = e
	if e.place != nil {
		e.place.n = i + 1
	}
}

// before reports whether e is due before other, or was added first if both are due at one moment.
func (e *entry[T]) before(other *entry[T]) bool {
	return e.at < other.at || e.at == other.at && e.added < other.added
}
