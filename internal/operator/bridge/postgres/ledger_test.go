// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The position is never behind a group with an unconfirmed message, and reaches the end of the last
// group when all are confirmed.
func TestThePositionIsBehindNoUnconfirmedMessage(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		l := newLedger[int](1000, 1<<20)
		type message struct {
			tag  uint64
			ends int // the end of its group
		}
		var open []message
		check := func() {
			at, _ := l.position()
			for _, m := range open {
				if at >= m.ends {
					t.Fatalf("seed %d: the position is %d, but a message of the group that ends at %d is open", seed, at, m.ends)
				}
			}
		}
		confirm := func() {
			i := r.IntN(len(open))
			if !l.confirm(open[i].tag) || l.confirm(open[i].tag) {
				t.Fatalf("seed %d: a message can be confirmed exactly once", seed)
			}
			open = slices.Delete(open, i, i+1)
			check()
		}
		end := 0
		for range 30 {
			end += 1 + r.IntN(10)
			l.begin()
			for range r.IntN(6) {
				open = append(open, message{l.add(10), end})
				l.skip(func(int) int { return end + 1 }) // a group is open
				check()
				if r.IntN(2) == 0 {
					confirm()
				}
			}
			l.commit(end)
			check()
		}
		for len(open) > 0 {
			confirm()
		}
		if at, _ := l.position(); at != end || !l.empty() {
			t.Errorf("seed %d: the position is %d, want %d", seed, at, end)
		}
		if l.skip(func(at int) int { return at + 5 }); l.at != end+5 || l.bytes != 0 || len(l.open) != 0 {
			t.Errorf("seed %d: after skip at %d, %d bytes", seed, l.at, l.bytes)
		}
	}
}

func TestTheLedgerIsFullByMessagesAndByBytes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ most, mostBytes, bytes, full int }{
		"messages": {3, 1 << 20, 1, 3}, "bytes": {100, 50, 20, 3}, "one large message": {100, 50, 1000, 1},
	} {
		l := newLedger[int](tt.most, tt.mostBytes)
		l.begin()
		var tag uint64
		for n := range tt.full {
			if l.full() {
				t.Errorf("%s: full with %d messages", name, n)
			}
			tag = l.add(tt.bytes)
		}
		if !l.full() {
			t.Errorf("%s: not full with %d messages", name, tt.full)
		}
		l.confirm(tag)
		select {
		case <-l.freed:
		default:
			t.Errorf("%s: the reader is not woken", name)
		}
		if l.full() {
			t.Errorf("%s: still full after a confirmation", name)
		}
	}
}
