// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"math/bits"
	"slices"
)

// Canon returns one representative of the states that differ only in details without effect.
// Details without effect are the names of tokens, the order of executions and of late requests, and
// times that are no longer compared.
func (m Model) Canon(s State) State {
	m.tidy(&s)
	sortExecs(&s)
	sortOpens(&s)
	if r := &s.Requests; later(r[0], r[1]) {
		r[0], r[1] = r[1], r[0]
	}
	if v := &s.Receivers; v[0].Hold|v[0].Ack < v[1].Hold|v[1].Ack {
		v[0], v[1] = v[1], v[0]
	}
	renameTokens(&s)
	if !m.Rules.UpstreamVersion {
		renameTimes(&s)
	}
	return s
}

// tidy removes values that have no effect.
func (m *Model) tidy(s *State) {
	for i := range (s.messagesAt(HeldPlace) &^ s.held()).All() {
		s.Messages[i] = Queued
	}
	for i := range s.Execs {
		f := &s.Execs[i]
		if f.Messages == 0 && f.Phase <= HasRead {
			*f = Exec{}
		}
		f.Done &= m.several(f.Messages)
	}
	if !m.Bounds.Clocks {
		for _, r := range s.rows() {
			r.LeaseUntil, r.LastWrite = 0, 0
		}
	}
	if m.Bounds.MaxRefusals == 0 {
		s.Row.Refusals = 0
	}
	if s.Left[Stale] == 0 {
		s.StaleDead = None
	}
	if s.Left[Restores] == 0 {
		s.Backup = Row{}
	}
}

// several returns the versions whose message carries another event as well.
func (m *Model) several(set Set) KeySet {
	return m.keys(m.messagesThat(set, func(msg Message) bool {
		return msg.Other || bits.OnesCount8(uint8(msg.Keys)) > 1
	}))
}

func sortExecs(s *State) {
	slices.SortStableFunc(s.Execs[:], func(a, b Exec) int { return cmp.Compare(rank(b), rank(a)) })
}

// rank orders executions by values that do not depend on the names of tokens and times. The order
// therefore stays the same when names change. The other values break ties well enough.
func rank(f Exec) uint64 {
	return uint64(f.Image)<<56 | uint64(f.Messages)<<48 | uint64(f.Phase)<<40 | uint64(f.Key)<<36 |
		uint64(f.Done)<<28 | uint64(f.Hand)<<24 | uint64(f.Body)<<16 | uint64(f.Fence)<<8 | uint64(f.Token)
}

func later(a, b Request) bool {
	return a == (Request{}) && b != (Request{}) || b != (Request{}) &&
		(a.Key > b.Key || a.Key == b.Key && (a.Fence > b.Fence || a.Fence == b.Fence && a.Body > b.Body))
}

// renameTokens numbers the tokens in the order in which they first occur.
func renameTokens(s *State) {
	var names [16]Token
	last := Token(0)
	s.tokens(func(t *Token) {
		if *t != 0 && names[*t] == 0 {
			last++
			names[*t] = last
		}
		*t = names[*t]
	})
}

// renameTimes replaces times by ranks: only their order stays.
func renameTimes(s *State) {
	used := uint64(1)
	s.times(func(c *Clock) { used |= 1 << *c })
	if used&(used+1) != 0 {
		s.times(func(c *Clock) { *c = Clock(bits.OnesCount64(used & (1<<*c - 1))) })
	}
}
