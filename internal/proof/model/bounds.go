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
	Messages    []Message // at most 6; all but the spares are sent, early or late, in any order
	Execs       int       // executions at the same time, at most 3
	Receivers   int       // 0: receive is one step; up to 2: ADMIT and answer are two
	Batch       int       // messages received together
	Sink        SinkKind
	Deletes     KeySet
	Poison      KeySet // refused for good
	Stubborn    KeySet // always an item error
	Same        KeySet // versions with the same bytes; where there are any, index keeps what it recognises
	Older       KeySet // written by a build without KEEP: its CLAIM and COMMIT leave content as it is
	Fickle      KeySet // accepted, or refused for good: it may change between two tries
	LateAdmits  bool   // an ADMIT without an answer may arrive at any later time
	Latecomers  bool   // messages that are older than rows are kept may still be in the queue
	Orphans     bool   // a version that stays pending without a message counts as settled: prune reports it
	NoCap       bool   // max wait is never over: only the pending version is claimed
	Clocks      bool   // clocks differ by any amount: times are not forgotten
	Stopped     bool   // the functions are stopped from the restore of the table until rows are raised
	Ahead       bool   // the row's fences lie ahead of every clock: each claim takes the next one; with Clocks
	References  bool   // payloads are references to what the source has now, which changes
	Gone        KeySet // states of the source in which it has nothing, as before its first; with References
	Absurd      KeySet // versions far above all good ones: an operator resets each once it is committed
	Floors      bool   // an operator resets to just above any older version, and a reset document again
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
		{b.Absurd, "is absurd"},
		{b.Same, "has the bytes that others have"},
		{b.Older, "is written by a build without KEEP"},
		{b.Fickle, "may be accepted or refused for good"},
		{b.Gone, "is a state in which the source has nothing"},
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
		{b.Latecomers, "messages older than rows are kept may still be in the queue"},
		{b.Orphans, "a version that stays pending without a message counts as settled"},
		{b.NoCap, "max wait is never over"},
		{b.Clocks, "clocks apart"},
		{b.Ahead, "the row's fences ahead of every clock"},
		{b.References, "payloads are references whose content changes"},
		{b.Floors, "a reset ends above any older version, and may be followed by a lower one"},
		{b.LateAdmits, "an ADMIT may arrive at any later time"},
		{b.Stopped, "nothing runs from the restore until rows are raised"},
	} {
		if more.on {
			out = append(out, more.text)
		}
	}
	return strings.Join(out, "; ")
}

// budgetText says what a budget allows: once, and several times.
var budgetText = [kinds][2]string{
	Crashes:    {"one crash, lost call or unknown outcome", "crashes, lost calls or unknown outcomes"},
	Duplicates: {"one duplicate", "duplicates"},
	Throttles:  {"one throttled request", "throttled requests"},
	Refusals:   {"one item error", "item errors"},
	Moves:      {"one message moved by receive count", "messages moved by receive count"},
	Deadlines:  {"one dead deadline", "dead deadlines"},
	Redrives:   {"one redrive", "redrives"},
	Prunes:     {"one row collected", "rows collected"},
	Outages:    {"one outage of the table", "outages of the table"},
	Ages:       {"one message that outlives rows", "messages that outlive rows"},
	Stale:      {"one read of an older image", "reads of older images"},
	Resets:     {"one reset by an operator", "resets by an operator"},
	Restores:   {"the table restored once", "restores of the table"},
	Samples:    {"one copy for another document's sake", "copies for other documents' sake"},
	Lags:       {"one load from a replica that lags", "loads from a replica that lags"},
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

// same reports whether two versions have the same bytes. None has none.
func (m *Model) same(a, b Key) bool {
	return a != None && (a == b || m.Bounds.Same.Has(a) && m.Bounds.Same.Has(b))
}

// holds reports whether the sink has the bytes of k.
func (m *Model) holds(s Sink, k Key) bool {
	bytes := s.Content
	if m.Bounds.References {
		bytes = s.Body
	}
	return m.same(bytes, k) && !m.gone(s)
}

// gone reports whether the sink has deleted the document.
func (m *Model) gone(s Sink) bool {
	return m.Bounds.Deletes.Has(s.Content) || m.Bounds.References && m.Bounds.Gone.Has(s.Body)
}

// rowKey is what the row calls version k.
func (m *Model) rowKey(k Key) Key {
	if m.Rules.KeyWithoutDigest && k == MaxKey {
		return MaxKey - 1
	}
	return k
}

// keys are the versions in some messages.
func (m *Model) keys(set Set) (out KeySet) {
	for i := range set.All() {
		out |= m.Bounds.Messages[i].Keys
	}
	return out
}

// which are those of the messages that have a property.
func (m *Model) which(set Set, has func(Message) bool) (out Set) {
	for i := range set.All() {
		if has(m.Bounds.Messages[i]) {
			out |= 1 << i
		}
	}
	return out
}

// with are those of the messages that carry k.
func (m *Model) with(set Set, k Key) Set {
	return m.which(set, func(msg Message) bool { return msg.Keys.Has(k) })
}

// alone are those of the messages that carry k and nothing else.
func (m *Model) alone(set Set, k Key) Set {
	return m.which(set, func(msg Message) bool { return msg.Keys == Keys(k) && !msg.Other })
}

// aged reports whether message i is older than rows are kept.
func (m *Model) aged(s *State, i int, k Key) bool { return k <= s.Aged && !s.Young.Has(i) }
