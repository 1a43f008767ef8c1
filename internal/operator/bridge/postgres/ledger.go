// SPDX-License-Identifier: Apache-2.0

package postgres

import "sync"

// ledger remembers what was handed to the bridge and is not confirmed yet. The messages are in
// groups: the rows of a transaction, or of a page of a copy. A group is done when it is complete
// and all its messages are confirmed. The ledger's position P is the end of the last group before
// which all groups are done. It is safe for concurrent use.
type ledger[P any] struct {
	most      int // messages
	mostBytes int

	mu     sync.Mutex
	tag    uint64
	open   map[uint64]held[P]
	bytes  int
	groups []*group[P]
	at     P
	moved  bool // at has changed since the last call of position
	freed  chan struct{}
}

type held[P any] struct {
	group *group[P]
	bytes int
}

type group[P any] struct {
	left     int
	complete bool
	end      P
}

// maxGroups bounds the groups behind one that cannot be confirmed.
const maxGroups = 1 << 16

func newLedger[P any](most, mostBytes int) *ledger[P] {
	return &ledger[P]{
		most: most, mostBytes: mostBytes, open: map[uint64]held[P]{}, freed: make(chan struct{}, 1),
	}
}

// begin begins a group.
func (l *ledger[P]) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.groups = append(l.groups, &group[P]{})
}

// add adds a message to the last group, and returns its tag.
func (l *ledger[P]) add(bytes int) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[len(l.groups)-1]
	g.left++
	l.tag++
	l.bytes += bytes
	l.open[l.tag] = held[P]{g, bytes}
	return l.tag
}

// commit completes the last group. The position is at end once the group and all before are done.
func (l *ledger[P]) commit(end P) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[len(l.groups)-1]
	g.complete, g.end = true, end
	l.advance()
}

// skip sets the position to the result of to, if no group is left.
func (l *ledger[P]) skip(to func(at P) P) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.groups) == 0 {
		l.at, l.moved = to(l.at), true
	}
}

// confirm notes that lull's queue has a message. It returns false if the tag is unknown.
func (l *ledger[P]) confirm(tag uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.open[tag]
	if !ok {
		return false
	}
	delete(l.open, tag)
	l.bytes -= h.bytes
	h.group.left--
	l.advance()
	select {
	case l.freed <- struct{}{}:
	default:
	}
	return true
}

func (l *ledger[P]) advance() {
	n := 0
	for ; n < len(l.groups) && l.groups[n].complete && l.groups[n].left == 0; n++ {
		l.at, l.moved = l.groups[n].end, true
	}
	l.groups = l.groups[n:]
}

// full reports whether the caller must wait for a confirmation before it reads on. freed then has a
// value after the next confirmation.
func (l *ledger[P]) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open) >= l.most || l.bytes >= l.mostBytes || len(l.groups) >= maxGroups
}

// empty reports whether every group is done.
func (l *ledger[P]) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.groups) == 0
}

// position returns the position, and whether it has changed since the last call.
func (l *ledger[P]) position() (at P, moved bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, moved = l.at, l.moved
	l.moved = false
	return at, moved
}
