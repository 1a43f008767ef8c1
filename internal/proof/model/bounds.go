package model

import (
	"fmt"
	"strings"
)

// SinkKind says what a sink promises about versions.
type SinkKind uint8

// The sinks. A lease outlives every request only where applyDelay is set: for plain sinks. With
// versions it may end at any time, and requests may arrive at any time. A forgetful sink has
// versions, but forgets those of deletes, after every older request has arrived.
const (
	Versioned SinkKind = iota
	Plain
	Forgetful
)

// Message is one message of the source queue.
type Message struct {
	Keys  KeySet
	Spare bool // not sent at first: a duplicate, or the copy of a redrive
	Other bool // carries an event of another document as well
}

// Bounds say what is explored: which messages, how many processes, how much may go wrong.
type Bounds struct {
	Messages    []Message // at most 6; every one that is no spare is sent, early or late, in any order
	Execs       int       // executions at the same time, at most 3
	Receivers   int       // 0: receive is one step; up to 2: ADMIT and answer are two
	Batch       int       // messages received together
	Sink        SinkKind
	Deletes     KeySet
	Poison      KeySet // refused for good
	Stubborn    KeySet // always an item error
	Fickle      KeySet // accepted, or refused for good: it may change between two tries
	LateAdmits  bool   // an ADMIT without an answer may arrive at any later time
	Latecomers  bool   // messages that are older than rows are kept may still be in the queue
	NoCap       bool   // max wait is never over: only the pending version is claimed
	Clocks      bool   // clocks differ by any amount: times are not forgotten
	MaxRefusals uint8  // item errors until the dead letter
	Budget      Budget
	Names       [MaxKey + 1]string // of versions, where v1, v2, v3 would not say it
}

// String tells the bounds in words.
func (b Bounds) String() string {
	m := Model{Bounds: b}
	var sent, spare Set
	for i, msg := range b.Messages {
		if msg.Spare {
			spare |= 1 << i
		} else {
			sent |= 1 << i
		}
	}
	var out []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			out = append(out, one)
		case n > 1:
			out = append(out, fmt.Sprintf("%d %s", n, many))
		}
	}
	out = append(out, m.messages(sent))
	if spare != 0 {
		out = append(out, "copies: "+m.messages(spare))
	}
	add(b.Execs, "one execution at a time", "executions at a time")
	add(b.Receivers, "a receiver in two steps", "receivers in two steps")
	add(b.Batch, "batches of one", "messages a batch")
	out = append(out, [...]string{
		Versioned: "a sink with versions", Plain: "a sink without versions",
		Forgetful: "a sink that forgets deletes",
	}[b.Sink])
	for _, k := range []struct {
		set  KeySet
		text string
	}{
		{b.Poison, "is refused for good"},
		{b.Stubborn, "always gets an item error"},
		{b.Fickle, "may be accepted or refused for good"},
	} {
		for n := Key(1); n <= MaxKey; n++ {
			if k.set.Has(n) {
				out = append(out, m.version(n)+" "+k.text)
			}
		}
	}
	l := b.Budget
	add(int(l.Crashes), "one crash, lost call or unknown outcome", "crashes, lost calls or unknown outcomes")
	add(int(l.Duplicates), "one duplicate", "duplicates")
	add(int(l.Throttles), "one throttled request", "throttled requests")
	add(int(l.Refusals), "one item error", "item errors")
	add(int(l.Moves), "one message moved by receive count", "messages moved by receive count")
	add(int(l.Deadlines), "one dead deadline", "dead deadlines")
	add(int(l.Redrives), "one redrive", "redrives")
	add(int(l.Prunes), "one row collected", "rows collected")
	add(int(l.Outages), "one outage of the table", "outages of the table")
	add(int(l.Ages), "one message that outlives rows", "messages that outlive rows")
	add(int(l.Stale), "one read of an older image", "reads of older images")
	if b.Latecomers {
		out = append(out, "messages older than rows are kept may still be in the queue")
	}
	if b.NoCap {
		out = append(out, "max wait is never over")
	}
	if b.Clocks {
		out = append(out, "clocks apart")
	}
	if b.LateAdmits {
		out = append(out, "an ADMIT may arrive at any later time")
	}
	return strings.Join(out, "; ")
}

// One makes messages with one version each.
func One(keys ...Key) []Message {
	var out []Message
	for _, k := range keys {
		out = append(out, Message{Keys: Keys(k)})
	}
	return out
}

// Spares makes messages that are not sent at first.
func Spares(keys ...Key) []Message {
	out := One(keys...)
	for i := range out {
		out[i].Spare = true
	}
	return out
}

func join(lists ...[]Message) []Message {
	var out []Message
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// Model is the protocol under rules and bounds: a Machine.
type Model struct {
	Rules  Rules
	Bounds Bounds
}

var _ Machine[State] = Model{}

// Initial has every message in the queue and nothing else.
func (m Model) Initial() State {
	s := State{Left: m.Bounds.Budget}
	for i, msg := range m.Bounds.Messages {
		if !msg.Spare {
			s.Messages[i] = Queued
		}
	}
	return s
}

// rowKey is what the row calls version k.
func (m *Model) rowKey(k Key) Key {
	if m.Rules.KeyWithoutDigest && k == MaxKey {
		return MaxKey - 1
	}
	return k
}

// keys are the versions in some messages.
func (m *Model) keys(set Set) KeySet {
	var out KeySet
	for i, msg := range m.Bounds.Messages {
		if set.Has(i) {
			out |= msg.Keys
		}
	}
	return out
}

// with are those of the messages that carry k.
func (m *Model) with(set Set, k Key) Set {
	var out Set
	for i, msg := range m.Bounds.Messages {
		if set.Has(i) && msg.Keys.Has(k) {
			out |= 1 << i
		}
	}
	return out
}

// aged reports whether message i is older than rows are kept.
func (m *Model) aged(s *State, i int, k Key) bool { return k <= s.Aged && !s.Young.Has(i) }
