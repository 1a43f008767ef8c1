package sim

import "time"

// occasion is something that happens at a moment of virtual time: a step of a service, or a
// coroutine that goes on.
type occasion struct {
	at   time.Duration
	seq  uint64 // occasions of one moment happen in the order in which they were made
	do   func()
	co   *coroutine // goes on, in place of do, if it is still in that park
	park uint64
}

// agenda is a heap of occasions, the next one first.
type agenda struct {
	heap []occasion
	made uint64
}

func (a *agenda) add(o occasion) {
	a.made++
	o.seq = a.made
	a.heap = append(a.heap, o)
	i := len(a.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !before(&a.heap[i], &a.heap[parent]) {
			return
		}
		a.heap[i], a.heap[parent] = a.heap[parent], a.heap[i]
		i = parent
	}
}

func (a *agenda) next() (occasion, bool) {
	if len(a.heap) == 0 {
		return occasion{}, false
	}
	first := a.heap[0]
	last := len(a.heap) - 1
	a.heap[0] = a.heap[last]
	a.heap[last] = occasion{}
	a.heap = a.heap[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if before(&a.heap[child], &a.heap[least]) {
				least = child
			}
		}
		if least == i {
			return first, true
		}
		a.heap[i], a.heap[least] = a.heap[least], a.heap[i]
		i = least
	}
}

func before(a, b *occasion) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }
