// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"
)

// SinkKind says what a sink promises about versions.
type SinkKind uint8

// The kinds of sinks. A lease outlives every request only if applyDelay is set, which is the case
// for plain sinks. If a sink has versions, a lease may end at any time, and a request may arrive at
// any time. A forgetful sink has versions, but forgets the version of a delete after every older
// request has arrived.
const (
	Versioned SinkKind = iota
	Plain
	Forgetful
)

// Message is one message of the source queue.
type Message struct {
	Keys  KeySet
	Spare bool // not sent at first: a duplicate, or the copy that a redrive sends
	Other bool // carries an event of another document as well
}

// Bounds say what is explored: which messages, how many processes, and how many faults.
type Bounds struct {
	Messages    []Message // at most 6; all messages but the spares are sent, early or late, in any order
	Execs       int       // executions at the same time, at most 3
	Receivers   int       // 0: receive is one step; 1 or 2: ADMIT and the answer are separate steps
	Batch       int       // messages received together
	Sink        SinkKind
	Deletes     KeySet
	Poison      KeySet // versions that the sink refuses for good
	Stubborn    KeySet // versions that always get an item error
	Same        KeySet // versions that all have the same bytes; if there are any, index uses KEEP
	Older       KeySet // versions of a build without KEEP, whose CLAIM and COMMIT do not change content
	Fickle      KeySet // versions that the sink accepts or refuses for good, differently on each try
	LateAdmits  bool   // an ADMIT without an answer may arrive at any later time
	Latecomers  bool   // messages that are older than the retention of rows may still be in the queue
	Orphans     bool   // a pending version without a message counts as settled, because prune reports it
	NoCap       bool   // max wait never ends: only the pending version is claimed
	Clocks      bool   // clocks differ by any amount, so the state keeps all times
	Stopped     bool   // the functions are stopped after the restore of the table until the rows are raised
	Ahead       bool   // the row's fences are ahead of every clock: each claim takes the next fence; needs Clocks
	References  bool   // payloads are references to the source's current state, which changes
	Gone        KeySet // states of the source in which the document does not exist; needs References
	Absurd      KeySet // versions far above all good ones; an operator resets each after its commit
	Floors      bool   // an operator may reset to just above any older version, and may reset a document again
	MaxRefusals uint8  // item errors before the dead letter
	Budget      Budget
	Names       [MaxKey + 1]string // names of the versions, if v1, v2 and v3 are not clear enough
}

// String describes the bounds in words.
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
		{b.Absurd, "is absurd"},
		{b.Same, "has the same bytes as other versions"},
		{b.Older, "is written by a build without KEEP"},
		{b.Fickle, "may be accepted or refused for good"},
		{b.Gone, "is a state in which the document does not exist"},
	} {
		for n := range k.set.All() {
			out = append(out, m.version(n)+" "+k.text)
		}
	}
	for kind, left := range b.Budget {
		add(int(left), budgetText[kind][0], budgetText[kind][1])
	}
	for _, more := range []struct {
		on   bool
		text string
	}{
		{b.Latecomers, "messages older than the retention of rows may still be in the queue"},
		{b.Orphans, "a version that stays pending without a message counts as settled"},
		{b.NoCap, "max wait never ends"},
		{b.Clocks, "clocks apart"},
		{b.Ahead, "the row's fences are ahead of every clock"},
		{b.References, "payloads are references whose content changes"},
		{b.Floors, "a reset may end above any older version, and a lower reset may follow"},
		{b.LateAdmits, "an ADMIT may arrive at any later time"},
		{b.Stopped, "no function runs between the restore and the raising of rows"},
	} {
		if more.on {
			out = append(out, more.text)
		}
	}
	return strings.Join(out, "; ")
}

// budgetText describes each kind of a budget, in the singular and in the plural.
var budgetText = [kinds][2]string{
	Crashes:    {"one crash, lost call or unknown outcome", "crashes, lost calls or unknown outcomes"},
	Duplicates: {"one duplicate", "duplicates"},
	Throttles:  {"one throttled request", "throttled requests"},
	Refusals:   {"one item error", "item errors"},
	Moves:      {"one message moved because of its receive count", "messages moved because of their receive counts"},
	Deadlines:  {"one dead deadline", "dead deadlines"},
	Redrives:   {"one redrive", "redrives"},
	Prunes:     {"one row deleted by prune", "rows deleted by prune"},
	Outages:    {"one outage of the table", "outages of the table"},
	Ages:       {"one message older than the retention of rows", "messages older than the retention of rows"},
	Stale:      {"one read of an older image", "reads of older images"},
	Resets:     {"one reset by an operator", "resets by an operator"},
	Restores:   {"the table restored once", "restores of the table"},
	Samples:    {"one copy written for another document", "copies written for other documents"},
	Lags:       {"one load from a lagging replica", "loads from a lagging replica"},
}

// One returns messages with one version each.
func One(keys ...Key) []Message {
	var out []Message
	for _, k := range keys {
		out = append(out, Message{Keys: Keys(k)})
	}
	return out
}

// Spares returns messages that are not sent at first.
func Spares(keys ...Key) []Message {
	out := One(keys...)
	for i := range out {
		out[i].Spare = true
	}
	return out
}

// Model is the protocol with its rules and bounds. It implements Machine.
type Model struct {
	Rules  Rules
	Bounds Bounds
}

var _ Machine[State] = Model{}

// Initial returns the first state: every message is in the queue, and nothing else exists.
func (m Model) Initial() State {
	s := State{Left: m.Bounds.Budget}
	for i, msg := range m.Bounds.Messages {
		if !msg.Spare {
			s.Messages[i] = Queued
		}
	}
	return s
}

// sameBytes reports whether two versions have the same bytes. No version has the bytes of None.
func (m *Model) sameBytes(a, b Key) bool {
	return a != None && (a == b || m.Bounds.Same.Has(a) && m.Bounds.Same.Has(b))
}

// holds reports whether the sink has the bytes of k.
func (m *Model) holds(s Sink, k Key) bool {
	bytes := s.Content
	if m.Bounds.References {
		bytes = s.Body
	}
	return m.sameBytes(bytes, k) && !m.gone(s)
}

// gone reports whether the sink has deleted the document.
func (m *Model) gone(s Sink) bool {
	return m.Bounds.Deletes.Has(s.Content) || m.Bounds.References && m.Bounds.Gone.Has(s.Body)
}

// rowKey returns the order key that the row stores for version k.
func (m *Model) rowKey(k Key) Key {
	if m.Rules.KeyWithoutDigest && k == MaxKey {
		return MaxKey - 1
	}
	return k
}

// keys returns the versions that the messages carry.
func (m *Model) keys(set Set) (out KeySet) {
	for i := range set.All() {
		out |= m.Bounds.Messages[i].Keys
	}
	return out
}

// messagesThat returns those messages of the set that have a property.
func (m *Model) messagesThat(set Set, has func(Message) bool) (out Set) {
	for i := range set.All() {
		if has(m.Bounds.Messages[i]) {
			out |= 1 << i
		}
	}
	return out
}

// carrying returns those messages of the set that carry k.
func (m *Model) carrying(set Set, k Key) Set {
	return m.messagesThat(set, func(msg Message) bool { return msg.Keys.Has(k) })
}

// carryingOnly returns those messages of the set that carry k and nothing else.
func (m *Model) carryingOnly(set Set, k Key) Set {
	return m.messagesThat(set, func(msg Message) bool { return msg.Keys == Keys(k) && !msg.Other })
}

// aged reports whether message i is older than the retention of rows.
func (m *Model) aged(s *State, i int, k Key) bool { return k <= s.Aged && !s.Young.Has(i) }
