// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

func TestADocumentThatGetsNoAnswerEndsUpAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		attempts int64
		all      int
		want     int
	}{{0, 500, 500}, {1, 500, 500}, {2, 500, 125}, {2, 3, 1}, {3, 500, 1}, {99, 500, 1}, {0, 0, 1}} {
		if got := shard.GroupSize(c.attempts, c.all); got != c.want {
			t.Errorf("after %d attempts %d of %d documents are sent together, want %d", c.attempts, got, c.all, c.want)
		}
	}
}

func TestMicrosAreTimesInUTC(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 4, 12, 0, 0, 123_456_789, time.FixedZone("", 3600))
	m := shard.MicrosOf(at)
	if got, want := m.Time(), at.Truncate(time.Microsecond).UTC(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := m.Add(1500 * time.Millisecond).Sub(m); got != 1500*time.Millisecond {
		t.Errorf("moved by %s, want 1.5s", got)
	}
	if shard.MicrosOf(time.Time{}) != 0 || !shard.Micros(0).Time().IsZero() {
		t.Error("no time is not 0")
	}
}

func TestRowsTakeValuesOfTheirKindOnly(t *testing.T) {
	t.Parallel()
	for _, a := range shard.Attrs() {
		var r shard.Row
		kinds := 0
		for _, v := range []shard.Value{
			{Kind: shard.KindBinary, Text: "k"},
			{Kind: shard.KindKeySet, Text: "\x01k"},
			{Kind: shard.KindString, Text: "s"},
			{Kind: shard.KindNumber, Num: 7},
		} {
			if !r.Set(a, v) {
				continue
			}
			kinds++
			if got, ok := r.Get(a); !ok || got != v {
				t.Errorf("%s: got %+v, %v, want %+v", a, got, ok, v)
			}
			if !r.Set(a, shard.Value{}) || r.Exists() {
				t.Errorf("attribute %s was not removed: %+v", a, r)
			}
		}
		if kinds != 1 {
			t.Errorf("%s takes values of %d kinds, want 1", a, kinds)
		}
	}
	var r shard.Row
	if _, ok := r.Get("no attribute"); ok || r.Set("no attribute", shard.Value{}) {
		t.Error("a row has an unknown attribute")
	}
}

// The table would not store a field without an attribute, and two attributes of one field would
// overwrite each other.
func TestEveryFieldHasAnAttributeOfItsOwn(t *testing.T) {
	t.Parallel()
	fields := reflect.TypeFor[shard.Row]().NumField() - 1 // without the field of the key
	if got := len(shard.Attrs()); got != fields {
		t.Errorf("%d attributes, want one for each of %d fields", got, fields)
	}
	for _, a := range shard.Attrs() {
		var r shard.Row
		for _, v := range []shard.Value{
			{Kind: shard.KindBinary, Text: "k"},
			{Kind: shard.KindKeySet, Text: "\x01k"},
			{Kind: shard.KindString, Text: "s"},
			{Kind: shard.KindNumber, Num: 7},
		} {
			if r = (shard.Row{}); r.Set(a, v) {
				break
			}
		}
		for _, other := range shard.Attrs() {
			if _, set := r.Get(other); set != (other == a) {
				t.Errorf("setting %s sets %s: %v", a, other, set)
			}
		}
	}
}

func BenchmarkApply(b *testing.B) {
	w := shard.Admit(shard.Admission{Doc: "a#1", Key: "k", Class: shard.ClassInt, Flight: "f", Now: 1})
	for b.Loop() {
		if r := w.Apply(shard.Row{Doc: "a#1"}); r.Pending != "k" {
			b.Fatal(r)
		}
	}
}
