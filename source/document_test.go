// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source/sourcetest"
)

func TestLoadedPayloadIsCheckedBeforeItBecomesADocument(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	m := sourcetest.Message("native-projected",
		`{"type":"doc.touched","subject":"a","sequence":"1","dataref":"s3://open-bucket/a"}`)
	e := set.Decode(m)[0].Event
	for name, data := range map[string]string{
		"empty": "", "not JSON": "<p>", "list": "[1]", "cut off": `{"a":`, "not UTF-8": "{\"a\":\"\xff\"}",
		"too deep": strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300),
	} {
		e.Data = data
		_, err := set.Document(m, e)
		var bad *event.Invalid
		if !errors.As(err, &bad) || bad.Reason != event.Payload || bad.Field != "dataref" || bad.Doc != e.Doc ||
			bad.Key != e.Key {
			t.Errorf("%s: got %v, want an Invalid of the event for its payload", name, err)
		}
	}
	e.Data = ` {"title":"T","more":1} ` + "\n"
	if got, err := set.Document(m, e); err != nil || string(got) != `{"title":"T"}` {
		t.Errorf("got %s, %v, want the projection of what was loaded", got, err)
	}
}

func TestDeleteHasNoDocument(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	m := sourcetest.Message("native", `{"type":"doc.deleted","subject":"a","sequence":"1"}`)
	var bad *event.Invalid
	if doc, err := set.Document(m, set.Decode(m)[0].Event); !errors.As(err, &bad) {
		t.Errorf("got %s, %v, want an Invalid", doc, err)
	}
}

// TestProjectionIsWhatThePointersName compares the projection with a slow projection of decoded
// values.
func TestProjectionIsWhatThePointersName(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	names := []string{"title", "details", "body", "rank", "tags", "a/b", "c~d", "x", "0", "1", "_lull"}
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		leaves := []*rapid.Generator[any]{
			rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.String().AsAny(),
			rapid.Map(rapid.SampledFrom([]string{"0", "-1.50", "1e400", "123456789012345678901234567890"}),
				func(s string) json.Number { return json.Number(s) }).AsAny(),
		}
		if depth > 0 {
			leaves = append(leaves,
				rapid.MapOfN(rapid.SampledFrom(names), rapid.Deferred(func() *rapid.Generator[any] {
					return value(depth - 1)
				}), 0, 5).AsAny(),
				rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) }), 0, 3).AsAny())
		}
		return rapid.OneOf(leaves...)
	}
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.MapOfN(rapid.SampledFrom(names), value(3), 0, 8).Draw(t, "data")
		text, err := json.Marshal(data)
		if err != nil {
			t.Fatalf("write the data: %v", err)
		}
		without := maps.Clone(data)
		delete(without, "_lull")
		for name, want := range map[string]map[string]any{"native": without, "native-projected": project(data)} {
			m := sourcetest.Message(name, `{"type":"doc.changed","subject":"a","sequence":"1","data":`+string(text)+`}`)
			doc, err := set.Document(m, set.Decode(m)[0].Event)
			if err != nil {
				t.Fatalf("make a document of %s: %v", text, err)
			}
			var got map[string]any
			d := json.NewDecoder(bytes.NewReader(doc))
			d.UseNumber() // keep every digit of a number
			if err := d.Decode(&got); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s of %s: got %s, %v, want %v", name, text, doc, err, want)
			}
		}
	})
}

// project does in plain code what the projection of the source native-projected must do.
func project(data map[string]any) map[string]any {
	out := map[string]any{}
	take := func(from, to map[string]any, name string) {
		if v, ok := from[name]; ok {
			to[name] = v
		}
	}
	inside := func(name string, names ...string) {
		if from, ok := data[name].(map[string]any); ok {
			to := map[string]any{}
			for _, n := range names {
				take(from, to, n)
			}
			if len(to) > 0 {
				out[name] = to
			}
		}
	}
	take(data, out, "title")
	inside("details", "body", "rank")
	inside("a/b", "c~d")
	switch tags := data["tags"].(type) {
	case []any:
		if len(tags) > 1 {
			out["tags"] = tags[1:2]
		}
	case map[string]any:
		inside("tags", "1")
	}
	return out
}
