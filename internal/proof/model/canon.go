package model

import (
	"cmp"
	"math/bits"
	"slices"
)

// Canon picks one of the states that differ in nothing that matters: the names of tokens, the order
// of executions and of late requests, times that are not compared any more.
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

// tidy forgets what makes no difference.
func (m *Model) tidy(s *State) {
	for i := range (s.at(HeldPlace) &^ s.held()).All() {
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

// several are the versions that share a message with another event.
func (m *Model) several(set Set) KeySet {
	return m.keys(m.which(set, func(msg Message) bool { return msg.Other || bits.OnesCount8(uint8(msg.Keys)) > 1 }))
}

func sortExecs(s *State) {
	slices.SortStableFunc(s.Execs[:], func(a, b Exec) int { return cmp.Compare(rank(b), rank(a)) })
}

// rank orders executions by what does not depend on names, so that the order stays the same when
// those change; the rest breaks ties well enough.
func rank(f Exec) uint64 {
	return uint64(f.Image)<<56 | uint64(f.Messages)<<48 | uint64(f.Phase)<<40 | uint64(f.Key)<<36 |
		uint64(f.Done)<<28 | uint64(f.Hand)<<24 | uint64(f.Body)<<16 | uint64(f.Fence)<<8 | uint64(f.Token)
}

func later(a, b Request) bool {
	return a == (Request{}) && b != (Request{}) || b != (Request{}) &&
		(a.Key > b.Key || a.Key == b.Key && (a.Fence > b.Fence || a.Fence == b.Fence && a.Body > b.Body))
}

// renameTokens numbers tokens by where they first occur.
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

// renameTimes keeps the order of times and nothing else.
func renameTimes(s *State) {
	used := uint64(1)
	s.times(func(c *Clock) { used |= 1 << *c })
	if used&(used+1) != 0 {
		s.times(func(c *Clock) { *c = Clock(bits.OnesCount64(used & (1<<*c - 1))) })
	}
}
