// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// State is the result of comparing an event of the export with the sink.
type State string

// The states. Drift reports which of them are drift.
const (
	Same       State = "same"        // the sink agrees with the event
	Newer      State = "newer"       // lull has a newer version, which the source sent after the export
	Moving     State = "in_motion"   // the document waits, is being written, or was written a moment ago: check again
	Missing    State = "missing"     // the sink has no such document
	Older      State = "older"       // the sink has an older version
	Changed    State = "changed"     // the sink has this version with other content, or another writer's document
	Undone     State = "undone"      // the event deletes the document, but the sink has it
	OtherClass State = "other_class" // the two versions are of different classes, so they cannot be compared
	Invalid    State = "invalid"     // lull would refuse the event
	Skipped    State = "skipped"     // the source skips it, or it belongs to another collection or part
)

// Drift reports whether the sink differs from the source.
func (s State) Drift() bool {
	switch s {
	case Missing, Older, Changed, Undone, OtherClass, Orphan:
		return true
	case Same, Newer, Moving, Invalid, Skipped, Silent:
	}
	return false
}

// Verdict is the state of an event.
type Verdict struct {
	Message int // the position of the event's message in the page
	Doc     shard.DocID
	Version string
	State   State
	Why     string // why the event is Invalid or Skipped
}

// Checker compares messages of an export with a sink. All fields are required. It is safe for
// concurrent use.
type Checker struct {
	reconcile.Looker

	Sources    *source.Set
	Collection shard.Collection
	// Versions compares only versions, for an engine whose mapping or pipeline changes the
	// documents.
	Versions bool
	// Names compares nothing: the verdicts only name the documents.
	Names bool
}

// candidate is an event and its verdict. The verdict has no state until the event is compared.
type candidate struct {
	Verdict

	event    event.Event
	arrival  bool   // the version is the time when the message was sent, and an export has no such time
	document []byte // nil if only versions can be compared
}

// Check compares the events of one page of messages. If a page has several valid events of one
// document, only the newest of them has a verdict.
func (c Checker) Check(ctx context.Context, messages []queue.Outgoing) ([]Verdict, error) {
	var all []*candidate
	newest := map[shard.DocID]*candidate{}
	for i, m := range messages {
		for _, a := range c.decode(m) {
			a.Message = i
			if known := newest[a.Doc]; a.State == "" && (known == nil || known.event.Key < a.event.Key) {
				newest[a.Doc] = a
			}
			all = append(all, a)
		}
	}
	// Verdicts are in the order of the messages.
	all = slices.DeleteFunc(all, func(a *candidate) bool { return a.State == "" && newest[a.Doc] != a })
	var docs []shard.DocID
	for _, a := range all {
		if a.State == "" {
			docs = append(docs, a.Doc)
		}
	}
	if c.Names {
		docs = nil
	}
	c.Whole = true
	found, err := c.Look(ctx, docs)
	if err != nil {
		return nil, fmt.Errorf("compare with the export: %w", err)
	}
	var out []Verdict
	for _, a := range all {
		if a.State == "" && !c.Names {
			a.State, found = judge(*a, found[0]), found[1:]
		}
		out = append(out, a.Verdict)
	}
	return out, nil
}

// decode reads the events of a message as receive does.
func (c Checker) decode(o queue.Outgoing) (all []*candidate) {
	m := queue.Message{Body: o.Body, Attributes: o.Attributes, Sent: c.Clock.Now()}
	later := m
	later.Sent = m.Sent.Add(arrives)
	sources := c.Sources.At(feed.RouteOf(c.Config, c.Sources, m).Sink)
	if len(c.Config.SinksFor(string(c.Collection))) > 1 {
		sources = c.Sources.At(c.SinkName)
	}
	after := sources.Decode(later)
	for i, r := range sources.Decode(m) {
		a := &candidate{event: r.Event, Verdict: Verdict{Doc: r.Event.Doc, Version: r.Event.Version}}
		switch {
		case r.Invalid != nil:
			a.Doc, a.State, a.Why = r.Invalid.Doc, Invalid, r.Invalid.Error()
		case r.Skip != "":
			a.State, a.Why = Skipped, r.Skip
		case r.Event.Doc.Collection() != c.Collection:
			a.State, a.Why = Skipped, "of collection "+string(r.Event.Doc.Collection())
		case !c.Config.Ours(r.Event.Doc):
			a.State, a.Why = Skipped, fmt.Sprintf("of part %d", c.Config.PartOf(r.Event.Doc))
		default:
			a.arrival = i < len(after) && after[i].Event.Key != r.Event.Key
			if r.Event.Op == event.Put && r.Event.Data != "" && !c.Versions {
				document, err := sources.Document(m, r.Event)
				if err != nil {
					a.State, a.Why = Invalid, err.Error()
				} else if plain, bad := sink.Plain(document); bad != nil {
					a.State, a.Why = Invalid, bad.Error()
				} else {
					a.document = plain
				}
			}
		}
		all = append(all, a)
	}
	return all
}

// arrives is the difference between the two sent times with which a message is decoded. If the
// version differs, the version is the time at which the message was sent.
const arrives = 1 << 40 // nanoseconds, about 18 minutes

// judge compares an event with the sink. A difference is in motion if the row has a pending version
// or a lease.
func judge(a candidate, f reconcile.Finding) State {
	s := stateAtRest(a, f)
	waits := f.Difference == shard.Busy || f.Difference == shard.Waiting || f.Row.Pending > f.Row.Committed
	if s.Drift() && waits {
		return Moving
	}
	return s
}

// stateAtRest compares an event with the sink, as if the document were not in motion.
func stateAtRest(a candidate, f reconcile.Finding) State {
	row, err := compare(f.Row.Committed, a)
	if err != nil {
		return OtherClass
	}
	there := f.Document != nil
	if a.event.Op == event.Delete {
		switch {
		case !there:
			return Same
		case f.Copy.Key != "" && row > 0 && f.Row.CommittedOp == shard.Put:
			return Newer
		}
		return Undone
	}
	switch {
	case !there && row > 0 && f.Row.CommittedOp == shard.Delete:
		return Newer
	case !there:
		return Missing
	case f.Copy.Key == "": // another writer replaced it
		return Changed
	}
	copied, err := compare(f.Copy.Key, a)
	if err != nil {
		return OtherClass
	}
	same := a.document == nil || equal(a.document, f.Document)
	switch {
	case copied > 0:
		return Newer
	case copied == 0 && same:
		return Same
	case copied == 0:
		return Changed
	// committed without a write, because the sink had the same bytes
	case row >= 0 && (a.document != nil && same || f.Copy.Bytes == shard.BytesSame):
		return Same
	}
	return Older
}

// compare returns a negative number, zero or a positive number if k is older than, equal to or
// newer than the event. It ignores run and time, because an export has neither. It returns zero if
// the version of the event is the time when it was sent.
func compare(k shard.OrderKey, a candidate) (int, error) {
	if a.arrival {
		return 0, nil
	}
	if k == "" {
		return -1, nil
	}
	is, err := k.Parts()
	if err != nil {
		return 0, err
	}
	want, err := a.event.Key.Parts()
	if err != nil {
		return 0, err
	}
	if is.Version.Class() != want.Version.Class() {
		return 0, errClass
	}
	return cmp.Or(cmp.Compare(is.Epoch, want.Epoch), is.Version.Compare(want.Version)), nil
}

var errClass = fmt.Errorf("versions of another class")

// equal compares two documents. It compares the bytes first, because these are mostly equal.
// Documents that differ only in the order of fields or in white space are equal.
func equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	va, okA := value(a)
	vb, okB := value(b)
	return okA && okB && reflect.DeepEqual(va, vb)
}

func value(document []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber() // compare numbers digit by digit
	return v, d.Decode(&v) == nil
}
