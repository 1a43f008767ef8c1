// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/source"
)

// checkExamples checks that each kind decodes the messages that it writes with the settings of the
// suite. It also checks that the kind decodes its own example with the options of the example.
func (s *suite) checkExamples(t *testing.T) {
	t.Helper()
	kinds := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.config.Sources)) {
		settings := s.config.Sources[name]
		kind, _ := source.Lookup(settings.Kind)
		if kind.Example.Write == nil {
			continue
		}
		if !kinds[kind.Name] {
			kinds[kind.Name] = true
			checkOwnExample(t, kind)
		}
		t.Run("example="+name, func(t *testing.T) {
			t.Parallel()
			for _, id := range []string{"a", "7", "0042", `<b>"a"/b\c ü😀%2f+ |#`, strings.Repeat("x", 400)} {
				s.checkWritten(t, name, kind, id)
			}
			for _, c := range []source.Change{
				{}, {ID: "a", Op: "move"}, {ID: "a", Op: event.Put, Data: "[]"}, {ID: "a", Op: event.Put, Data: "{"},
			} {
				if body, err := kind.Example.Write(settings, c); err == nil {
					t.Errorf("write %+v: got %s, want an error", c, body)
				}
			}
		})
	}
}

// checkOwnExample decodes the example of a kind with settings that have one source. A reader who
// copies the example has such settings.
func checkOwnExample(t *testing.T, kind source.Kind) {
	t.Helper()
	c := config.Default()
	c.DefaultSource = "example"
	c.Sources = map[string]config.Source{"example": kind.ExampleSettings()}
	if bucket := kind.Example.Change.Bucket; bucket != "" {
		c.Payload.Allow = []config.BucketPrefix{{Bucket: bucket}}
	}
	c.Complete()
	set, err := source.New(&c)
	if err != nil {
		t.Fatalf("build a source of kind %s from the options of its example: %v", kind.Name, err)
	}
	got, want := set.Decode(event.Message{ID: "m-1", Body: kind.Message(), Sent: Sent}), kind.Example.Change
	if len(got) != 1 || got[0].Invalid != nil || got[0].Event.Op != want.Op || got[0].Event.Version != want.Version ||
		!strings.HasSuffix(string(got[0].Event.Doc), want.ID) {
		t.Errorf("the example of kind %s is %s and decodes to %+v, want %+v", kind.Name, kind.Message(), got, want)
	}
}

// checkWritten writes three versions of a document and a delete, and decodes them.
func (s *suite) checkWritten(t *testing.T, name string, kind source.Kind, id string) {
	t.Helper()
	settings := s.config.Sources[name]
	var last event.Event
	for n, op := range []event.Operation{event.Put, event.Put, event.Put, event.Delete} {
		c := source.Change{
			ID: id, Op: op, Version: source.NumberedVersion(settings.Class, uint32(9+n)),
			Time: Sent.Truncate(time.Second), Data: fmt.Sprintf(`{"title":"One","list":[{"n":%d}]}`, n),
		}
		if n >= 2 { // the version is made from a time, like that of a change without a number
			c.Version = source.VersionAt(settings.Class, Sent.Add(time.Duration(n)*time.Millisecond))
		}
		for _, place := range s.config.Payload.Allow {
			if place.Prefix == "" && len(place.Sources) == 0 {
				c.Bucket = place.Bucket
			}
		}
		body, err := kind.Example.Write(settings, c)
		if settings.NoVersion == source.NoVersionPosition { // a body without its record has no position
			var e source.Encoded
			e, err = s.Encode(name, c)
			body = e.Body
		}
		if err != nil {
			if op == event.Delete && strings.Contains(err.Error(), "set ") {
				continue // these settings do not support a delete, and the error says so
			}
			t.Fatalf("write %+v: %v", c, err)
		}
		m := Message(name, body)
		m.Sent = Sent.Add(time.Duration(n) * time.Second)
		got := s.check(t, m)
		if len(got) != 1 || got[0].Invalid != nil || got[0].Skip != "" {
			t.Fatalf("decode %s: got %+v, want one event", body, got)
		}
		e := got[0].Event
		_, short, _ := strings.Cut(string(e.Doc), "#")
		short = strings.TrimPrefix(short, c.Bucket+"/")
		if e.Op != op || short != id && short != source.JoinKey(map[string]string{"id": id}) {
			t.Errorf("decode %s: got %s %q, want %s %q", body, e.Op, e.Doc, op, id)
		}
		want := c.Version
		if settings.NoVersion == source.NoVersionPosition { // positions are padded to the same length
			want = strings.Repeat("0", max(0, len(e.Version)-len(want))) + want
		}
		if settings.NoVersion != source.NoVersionArrival && e.Version != want {
			t.Errorf("decode %s: got version %s, want %s", body, e.Version, want)
		}
		if e.Key <= last.Key {
			t.Errorf("decode %s: got order key %s, want one after %s", body, e.Key, last.Key)
		}
		last = e
		if op == event.Put && e.Data != "" && len(settings.Projection) == 0 {
			s.checkContent(t, m, e, c.Data, kind.OwnDocument)
		}
	}
}

// checkContent checks that the document contains the content. If the kind makes its own document,
// the document must contain at least the title.
func (s *suite) checkContent(t *testing.T, m event.Message, e event.Event, data string, own bool) {
	t.Helper()
	doc, err := s.Document(m, e)
	if err != nil {
		t.Fatalf("document of %s: %v", m.Body, err)
	}
	for name, want := range gjson.Parse(data).ForEach {
		got := event.Child(gjson.ParseBytes(doc), name.Str)
		if (name.Str == "title" || !own) && !reflect.DeepEqual(got.Value(), want.Value()) {
			t.Errorf("document of %s: got %s, want %s to be %s", m.Body, doc, name, want)
		}
	}
}
