package model

import "hash/maphash"

// index numbers states. It is an open-addressing table of numbers into the explorer's list, so that
// each state is there once: a Go map would hold it a second time. Beside the number stands half of
// the hash: most probes end without a look at the state itself, which is seldom in a cache.
type index[S comparable] struct {
	seed  maphash.Seed
	slots []slot
	count int
}

// slot is 0 where it is empty, otherwise the upper half of the hash and a number plus one.
type slot uint64

func newIndex[S comparable]() index[S] {
	return index[S]{seed: maphash.MakeSeed(), slots: make([]slot, 1<<12)}
}

// add returns the number of s, which is the size of states where s is new: the caller appends it
// then.
func (x *index[S]) add(states *list[S], s S) (uint32, bool) {
	if x.count*4 >= len(x.slots)*3 {
		x.grow()
	}
	hash := maphash.Comparable(x.seed, s)
	mask := len(x.slots) - 1
	for at := home(hash, mask); ; at = (at + 1) & mask {
		old := x.slots[at]
		if old == 0 {
			x.count++
			x.slots[at] = slot(hash)&^(1<<32-1) | slot(states.size()+1)
			return uint32(states.size()), true
		}
		if uint64(old)>>32 == hash>>32 && *states.at(int(uint32(old) - 1)) == s {
			return uint32(old) - 1, false
		}
	}
}

// home is where a probe begins. It uses the kept half of the hash, so that the table grows without
// the states.
func home(hash uint64, mask int) int {
	return int(hash>>32*0x9E3779B97F4A7C15>>20) & mask
}

func (x *index[S]) grow() {
	old := x.slots
	x.slots = make([]slot, 2*len(old))
	mask := len(x.slots) - 1
	for _, s := range old {
		if s == 0 {
			continue
		}
		at := home(uint64(s), mask)
		for x.slots[at] != 0 {
			at = (at + 1) & mask
		}
		x.slots[at] = s
	}
}

// list grows without moving what it holds: a slice of gigabytes would need twice its size while it
// is copied.
type list[T any] struct {
	chunks [][]T
}

const chunkSize = 1 << 14

func (l *list[T]) size() int {
	if len(l.chunks) == 0 {
		return 0
	}
	last := len(l.chunks) - 1
	return last*chunkSize + len(l.chunks[last])
}

func (l *list[T]) add(v T) {
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last]) == chunkSize {
		l.chunks = append(l.chunks, make([]T, 0, chunkSize))
		last++
	}
	l.chunks[last] = append(l.chunks[last], v)
}

func (l *list[T]) at(n int) *T { return &l.chunks[n/chunkSize][n%chunkSize] }
