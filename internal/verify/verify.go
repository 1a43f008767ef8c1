package verify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/feed"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/reconcile"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// State is what the sink makes of an event of the export.
type State string

// The states. Drift reports which of them are drift.
const (
	Same       State = "same"        // the sink holds it
	Newer      State = "newer"       // lull has a newer version: the source went on after the export
	Moving     State = "in_motion"   // it is being written, was a moment ago, or waits for it: look again
	Missing    State = "missing"     // the sink has no such document
	Older      State = "older"       // the sink has an older version
	Changed    State = "changed"     // the sink has this version with another content
	Undone     State = "undone"      // the export deletes it, and the sink has it
	OtherClass State = "other_class" // the versions do not compare
	Invalid    State = "invalid"     // lull would refuse the event
	Skipped    State = "skipped"     // the source passes it over, or it is of another collection
)

// Drift reports whether the sink differs from the source.
func (s State) Drift() bool {
	switch s {
	case Missing, Older, Changed, Undone, OtherClass:
		return true
	case Same, Newer, Moving, Invalid, Skipped:
	}
	return false
}

// Verdict is the state of an event.
type Verdict struct {
	Message int // the position of its message
	Doc     shard.DocID
	Version string
	State   State
	Why     string // Invalid, Skipped
}

// Checker compares messages of an export with a sink. All fields are required. It is safe for
// concurrent use.
type Checker struct {
	reconcile.Looker

	Sources    *source.Set
	Collection shard.Collection
	// Versions compares versions only: for an engine whose mapping or pipeline changes what it keeps.
	Versions bool
}

// asked is the newest event of a document, and its verdict's place.
type asked struct {
	event.Event

	at       int
	arrival  bool   // its version is when it was sent: it says nothing here
	document []byte // nil where only versions can be compared
}

// Check compares the events of messages, in one page. Of several events of one document only the
// newest has a verdict.
func (c Checker) Check(ctx context.Context, messages []queue.Outgoing) ([]Verdict, error) {
	var out []Verdict
	newest := map[shard.DocID]*asked{}
	for i, m := range messages {
		for _, a := range c.decode(m) {
			v := Verdict{Message: i, Doc: a.Doc, Version: a.Version, State: a.state, Why: a.why}
			if v.State == "" {
				if known := newest[a.Doc]; known != nil && known.Key >= a.Key {
					continue
				}
				a.at = len(out)
				newest[a.Doc] = &a.asked
			}
			out = append(out, v)
		}
	}
	docs, all := make([]shard.DocID, 0, len(newest)), make([]*asked, 0, len(newest))
	for i := range out { // in the order of the messages
		if a := newest[out[i].Doc]; a != nil && a.at == i && out[i].State == "" {
			docs, all = append(docs, a.Doc), append(all, a)
		}
	}
	c.Whole = true
	found, err := c.Look(ctx, docs)
	if err != nil {
		return nil, fmt.Errorf("compare with the export: %w", err)
	}
	for i, a := range all {
		out[a.at].State = judge(*a, found[i])
	}
	kept := out[:0]
	for _, v := range out {
		if v.State != "" { // an older event of the same page has none
			kept = append(kept, v)
		}
	}
	return kept, nil
}

// decoded is an event, or why there is none to compare.
type decoded struct {
	asked

	state State
	why   string
}

// decode reads the events of a message as receive does.
func (c Checker) decode(o queue.Outgoing) (all []decoded) {
	m := queue.Message{Body: o.Body, Attributes: o.Attributes, Sent: c.Clock.Now()}
	later := m
	later.Sent = m.Sent.Add(arrives)
	sources := c.Sources.At(feed.RouteOf(c.Config, c.Sources, m).Sink)
	if c.Config.FannedOut(string(c.Collection)) {
		sources = c.Sources.At(c.SinkName)
	}
	after := sources.Decode(later)
	for i, r := range sources.Decode(m) {
		d := decoded{asked: asked{Event: r.Event}}
		switch {
		case r.Invalid != nil:
			d.Doc, d.state, d.why = r.Invalid.Doc, Invalid, r.Invalid.Error()
		case r.Skip != "":
			d.state, d.why = Skipped, r.Skip
		case r.Event.Doc.Collection() != c.Collection:
			d.state, d.why = Skipped, "of collection "+string(r.Event.Doc.Collection())
		default:
			d.arrival = i < len(after) && after[i].Event.Key != r.Event.Key
			if r.Event.Op == event.Put && r.Event.Data != "" && !c.Versions {
				document, err := sources.Document(m, r.Event)
				if err != nil {
					d.state, d.why = Invalid, err.Error()
					break
				}
				plain, bad := sink.Plain(document)
				if bad != nil {
					d.state, d.why = Invalid, bad.Error()
				}
				d.document = plain
			}
		}
		all = append(all, d)
	}
	return all
}

// arrives is how much later a message is decoded once more: where that makes another version, its
// version is the time at which it was sent.
const arrives = 1 << 40 // nanoseconds, about 18 minutes

// judge says what the sink makes of an event.
func judge(a asked, f reconcile.Finding) State {
	s := judged(a, f)
	waits := f.Difference == shard.Busy || f.Difference == shard.Waiting || f.Row.Pending > f.Row.Committed
	if s.Drift() && waits {
		return Moving
	}
	return s
}

func judged(a asked, f reconcile.Finding) State {
	row, err := compare(f.Row.Committed, a)
	if err != nil {
		return OtherClass
	}
	there := f.Document != nil
	if a.Op == event.Delete {
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
	case f.Copy.Key == "": // somebody wrote over it
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
	// committed without a write: the bytes were there
	case row >= 0 && (a.document != nil && same || f.Copy.Bytes == shard.BytesSame):
		return Same
	}
	return Older
}

// compare is negative, zero or positive as a version is older than, equal to or newer than the
// event's. Neither run nor time counts: an export has none.
func compare(k shard.OrderKey, a asked) (int, error) {
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
	want, err := a.Key.Parts()
	if err != nil {
		return 0, err
	}
	if is.Version.Class() != want.Version.Class() {
		return 0, errClass
	}
	return cmp.Or(cmp.Compare(is.Epoch, want.Epoch), is.Version.Compare(want.Version)), nil
}

var errClass = fmt.Errorf("versions of another class")

// equal compares two documents: bytes first, because they are mostly the same. What another writer
// put in another order is the same document.
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
	d.UseNumber() // digit for digit
	return v, d.Decode(&v) == nil
}
