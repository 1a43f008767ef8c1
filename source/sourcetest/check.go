// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// check decodes a message and checks the promises that hold for any message.
func (s *suite) check(t *testing.T, m event.Message) []event.Result {
	t.Helper()
	results := s.Decode(m)
	if len(results) == 0 || len(results) > event.MaxEvents {
		t.Fatalf("decode %q: got %d results", m.Body, len(results))
	}
	for i, r := range results {
		if n := count(r.Event.Doc != "", r.Skip != "", r.Invalid != nil); n != 1 {
			t.Fatalf("decode %q: result %d is %d of event, skip and Invalid: %+v", m.Body, i, n, r)
		}
		switch {
		case r.Invalid != nil:
			checkInvalid(t, m, i, r.Invalid)
		case r.Event.Index != i:
			t.Fatalf("decode %q: result %d has index %d", m.Body, i, r.Event.Index)
		case r.Skip == "":
			s.checkEvent(t, m, r.Event)
		}
	}
	s.checkRepeatable(t, m, results)
	return results
}

func checkInvalid(t *testing.T, m event.Message, i int, bad *event.Invalid) {
	t.Helper()
	if bad.Index != i || bad.Reason == "" || bad.Problem == "" || !utf8.ValidString(bad.Problem) {
		t.Fatalf("decode %q: %+v at %d is incomplete", m.Body, bad, i)
	}
	whole := strings.Contains(bad.Problem, "message") || strings.Contains(bad.Problem, "body") ||
		strings.Contains(bad.Problem, "event")
	if bad.Field == "" && !whole {
		t.Fatalf("decode %q: %q names no field and does not say that the message or its body is wrong", m.Body,
			bad.Problem)
	}
	if len(bad.Field) > 64 {
		t.Fatalf("decode %q: the field %q has more than 64 bytes: name a field, do not quote content", m.Body, bad.Field)
	}
	const quoted = 64 + 2 // the text after a quoted field may equal two bytes of the body by chance
	for j := 0; j+quoted < len(bad.Problem); j++ {
		if strings.Contains(m.Body, bad.Problem[j:j+quoted]) {
			t.Fatalf("decode %q: the problem %q quotes more than 64 bytes", m.Body, bad.Problem)
		}
	}
}

func (s *suite) checkEvent(t *testing.T, m event.Message, e event.Event) {
	t.Helper()
	p, err := e.Key.Parts()
	if err != nil || p.Version.Class() != e.Class || e.Version == "" {
		t.Fatalf("decode %q: key %s of %+v: %v", m.Body, e.Key, e, err)
	}
	if _, err := shard.ParseDocID(string(e.Doc)); err != nil || !utf8.ValidString(string(e.Doc)) {
		t.Fatalf("decode %q: document %q: %v", m.Body, e.Doc, err)
	}
	payloads := count(e.Data != "", e.DataRef != "")
	if e.Op == event.Put && payloads != 1 || e.Op == event.Delete && payloads != 0 ||
		e.Op != event.Put && e.Op != event.Delete {
		t.Fatalf("decode %q: %s has %d payloads", m.Body, e.Op, payloads)
	}
	if e.Op == event.Delete || e.DataRef != "" {
		return
	}
	doc, err := s.Document(m, e)
	if err != nil {
		var bad *event.Invalid
		if !errors.As(err, &bad) || bad.Doc != e.Doc || bad.Key != e.Key {
			t.Fatalf("document of %q: %v, want an Invalid of the event", m.Body, err)
		}
		checkInvalid(t, m, e.Index, bad)
		return
	}
	if object := gjson.ParseBytes(doc); !json.Valid(doc) || !object.IsObject() {
		t.Fatalf("document of %q: %s is not a JSON object", m.Body, doc)
	} else if event.Child(object, "_lull").Exists() {
		t.Fatalf("document of %q: %s contains the key _lull, which is reserved for sinks", m.Body, doc)
	}
}

// checkRepeatable checks that the same message gives the same result. The order key must not depend
// on attributes or on the send time, except with the policy arrival, whose version is a time.
func (s *suite) checkRepeatable(t *testing.T, m event.Message, first []event.Result) {
	t.Helper()
	if again := s.Decode(m); !reflect.DeepEqual(again, first) {
		t.Fatalf("decode %q a second time: got %+v, want %+v", m.Body, again, first)
	}
	name := m.Attributes[queue.AttrSource].String
	if s.config.Sources[name].NoVersion == source.NoVersionArrival {
		return
	}
	m.Sent = m.Sent.Add(time.Hour)
	m.Attributes = maps.Clone(m.Attributes)
	for name, text := range map[string]string{queue.AttrFirstSent: "5", "routing_key": "x.bulk.y"} {
		if _, said := m.Attributes[name]; !said {
			m.Attributes[name] = queue.Text(text)
		}
	}
	other := s.Decode(m)
	for i, r := range first {
		// The routing key of a requeue may make a live event a resync, and then the resync run
		// counts. Such an event may differ.
		became := other[i].Event.Resync && !r.Event.Resync ||
			other[i].Invalid != nil && other[i].Invalid.Field == "resyncrun"
		if !became && (other[i].Event.Key != r.Event.Key || (other[i].Invalid == nil) != (r.Invalid == nil)) {
			t.Fatalf("decode %q with other attributes: got %+v, want %+v", m.Body, other[i], r)
		}
	}
}

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}
