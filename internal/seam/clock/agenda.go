package clock

import "time"

// Agenda is a priority queue: it holds items by the moment when they are due, the earliest first.
// Items of one moment are returned in the order in which they were added, so that a simulation can
// be repeated. The zero Agenda is empty. Only one goroutine may use it at a time.
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

// Place is the place of an item in an agenda. The zero Place is in none.
type Place struct{ n int }

// Add adds an item that is due at a moment. [Agenda.Remove] finds the item by its place. place is
// nil for an item that is never removed.
func (a *Agenda[T]) Add(at time.Duration, what T, place *Place) {
	a.added++
	a.heap = append(a.heap, entry[T]{at, a.added, what, place})
	a.up(len(a.heap) - 1)
}

// First returns the item that is due next, and when. The item stays in the agenda.
func (a *Agenda[T]) First() (at time.Duration, what T, ok bool) {
	if len(a.heap) == 0 {
		return 0, what, false
	}
	return a.heap[0].at, a.heap[0].what, true
}

// Next removes and returns the item that is due next.
func (a *Agenda[T]) Next() (at time.Duration, what T, ok bool) {
	at, what, ok = a.First()
	if ok {
		a.take(0)
	}
	return at, what, ok
}

// Due removes and returns the item that is due next, if it is due by now.
func (a *Agenda[T]) Due(now time.Duration) (what T, ok bool) {
	if len(a.heap) == 0 || a.heap[0].at > now {
		return what, false
	}
	what = a.heap[0].what
	a.take(0)
	return what, true
}

// Remove removes the item at a place, if there is one.
func (a *Agenda[T]) Remove(place *Place) {
	if place.n > 0 {
		a.take(place.n - 1)
	}
}

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

// up moves entry i towards the front until the heap is in order.
func (a *Agenda[T]) up(i int) {
	e := a.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
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
		child := 2*i + 1
		if child+1 < len(a.heap) && a.heap[child+1].before(&a.heap[child]) {
			child++
		}
		if child >= len(a.heap) || e.before(&a.heap[child]) {
			a.set(i, e)
			return i
		}
		a.set(i, a.heap[child])
		i = child
	}
}

func (a *Agenda[T]) set(i int, e entry[T]) {
	a.heap[i] = e
	if e.place != nil {
		e.place.n = i + 1
	}
}

func (e *entry[T]) before(other *entry[T]) bool {
	return e.at < other.at || e.at == other.at && e.added < other.added
}
