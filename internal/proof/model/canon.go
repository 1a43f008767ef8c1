package model

import "math/bits"

// Canon picks one of the states that differ only in the names of tokens, the order of executions
// and late requests, and times that nobody compares any more.
func (m Model) Canon(s State) State {
	m.tidy(&s)
	sortExecs(&s)
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
	held := s.held()
	for i := range s.Messages {
		if s.Messages[i] == HeldPlace && !held.Has(i) {
			s.Messages[i] = Queued
		}
	}
	for i := range s.Execs {
		f := &s.Execs[i]
		if f.Messages == 0 && f.Phase <= HasRead {
			*f = Exec{}
		}
		f.Done &= m.several(f.Messages)
	}
	if !m.Bounds.Clocks {
		s.Row.LeaseUntil, s.Row.LastWrite = 0, 0
	}
	if m.Bounds.MaxRefusals == 0 {
		s.Row.Refusals = 0
	}
	if s.Left.Stale == 0 {
		s.StaleDead = None
	}
}

// several are the versions that share a message with another event.
func (m *Model) several(set Set) KeySet {
	var out KeySet
	for i, msg := range m.Bounds.Messages {
		if set.Has(i) && (msg.Other || bits.OnesCount8(uint8(msg.Keys)) > 1) {
			out |= msg.Keys
		}
	}
	return out
}

func sortExecs(s *State) {
	for i := 1; i < len(s.Execs); i++ {
		for j := i; j > 0 && rank(s.Execs[j-1]) < rank(s.Execs[j]); j-- {
			s.Execs[j-1], s.Execs[j] = s.Execs[j], s.Execs[j-1]
		}
	}
}

// rank orders executions by what does not depend on names, so that the order stays the same when
// those change; the rest breaks ties well enough.
func rank(f Exec) uint64 {
	return uint64(f.Messages)<<48 | uint64(f.Phase)<<40 | uint64(f.Key)<<36 | uint64(f.Done)<<28 | uint64(f.Hand)<<24 |
		uint64(f.Fence)<<8 | uint64(f.Token)
}

func later(a, b Request) bool {
	return a == (Request{}) && b != (Request{}) || b != (Request{}) &&
		(a.Key > b.Key || a.Key == b.Key && a.Fence > b.Fence)
}

// renameTokens numbers tokens by where they first occur.
func renameTokens(s *State) {
	var names [16]Token
	last := Token(0)
	name := func(t *Token) {
		if *t == 0 {
			return
		}
		if names[*t] == 0 {
			last++
			names[*t] = last
		}
		*t = names[*t]
	}
	name(&s.Row.Owner)
	for i := range s.Execs {
		name(&s.Execs[i].Token)
	}
	for i := range s.Requests {
		name(&s.Requests[i].Token)
	}
	for i := range s.Writes {
		name(&s.Writes[i].Token)
	}
}

// renameTimes keeps the order of times and nothing else.
func renameTimes(s *State) {
	used := uint64(1)
	used |= 1<<s.Row.LeaseUntil | 1<<s.Row.LastWrite | 1<<s.Sink.Fence
	for _, f := range s.Execs {
		used |= 1 << f.Fence
	}
	for _, r := range s.Requests {
		used |= 1 << r.Fence
	}
	for _, w := range s.Writes {
		used |= 1 << w.Fence
	}
	if used&(used+1) == 0 {
		return
	}
	rename := func(c *Clock) { *c = Clock(bits.OnesCount64(used & (1<<*c - 1))) }
	rename(&s.Row.LeaseUntil)
	rename(&s.Row.LastWrite)
	rename(&s.Sink.Fence)
	for i := range s.Execs {
		rename(&s.Execs[i].Fence)
	}
	for i := range s.Requests {
		rename(&s.Requests[i].Fence)
	}
	for i := range s.Writes {
		rename(&s.Writes[i].Fence)
	}
}
