// SPDX-License-Identifier: Apache-2.0

package sinktest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
)

// reading contains the tests of Get and All.
var reading = []duty{
	{"WriteOnly says that the sink is not a sink.Reader", always, func(t *testing.T, b *bundle) {
		if _, reads := b.sink.(sink.Reader); reads == b.Capabilities.WriteOnly {
			t.Errorf("it is a sink.Reader: %t, and Capabilities.WriteOnly is %t", reads, b.Capabilities.WriteOnly)
		}
	}},
	{"a missing document is not found", always, func(t *testing.T, b *bundle) {
		b.apply(t, put(docID("content", "there"), 1, `{}`))
		b.holds(t, del(docID("content", "missing"), 1))
		b.holds(t, del(docID("no-such-collection", "missing"), 1))
	}},
	{"numbers in documents are read back digit for digit", always, digitForDigit},
	{"the upstream's version is text", always, func(t *testing.T, b *bundle) {
		for i, version := range []string{
			"007", "0", "12345678901234567890123456789012345678901", "16/B374D848",
			"2026-11-20T16:00:00+01:00", "ä",
		} {
			op := put(docID("content", fmt.Sprint(i)), 1, `{}`)
			op.Version = version
			b.stores(t, op)
		}
	}},
	{"every id that is allowed", always, func(t *testing.T, b *bundle) {
		var ops []sink.Op
		for i, id := range oddIDs() {
			ops = append(ops, put(docID("content", id), 1, fmt.Sprintf(`{"n":%d}`, i)))
		}
		b.apply(t, ops...)
		for _, op := range ops {
			b.holds(t, op)
		}
		sorted(t, b.all(t), ops)
		for i := range ops { // if the sink confuses two ids, this delete removes the wrong document
			b.stores(t, del(ops[i].Doc, 2))
			if i+1 < len(ops) {
				b.holds(t, ops[i+1])
			}
		}
	}},
	{"marks are the metadata written with documents, if the sink can read them", always, marks},
	{"a search finds a write, if the sink says what a search finds", always, searchable},
	{"a collection is read from a given id, and several documents at once", always, audited},
	{"all of an empty sink returns nothing", always, func(t *testing.T, b *bundle) {
		sorted(t, b.all(t), nil)
	}},
	{"all are sorted by collection and id, without deleted documents", always, func(t *testing.T, b *bundle) {
		var ops []sink.Op
		for i := range 150 {
			collection := []string{"content", "content-2", "a", "z0", "cont"}[i%5]
			ops = append(ops, put(docID(collection, fmt.Sprintf("%d", i*7919%150)), 1, fmt.Sprintf(`{"n":%d}`, i)))
		}
		b.apply(t, ops...)
		b.apply(t, del(ops[0].Doc, 2), del(ops[77].Doc, 2))
		changed := put(ops[5].Doc, 2, `{"changed":true}`)
		b.apply(t, changed)
		ops[5] = changed
		ops = append(ops[1:77:77], ops[78:]...)
		sorted(t, b.all(t), ops)
	}},
	{"all stops at the first error", always, func(t *testing.T, b *bundle) {
		b.apply(t, put(docID("content", "a"), 1, `{}`), put(docID("content", "b"), 1, `{}`),
			put(docID("content", "c"), 1, `{}`))
		b.refresh(t)
		stop, calls := errors.New("stop"), 0
		err := b.sink.All(t.Context(), func(sink.Stored) error {
			if calls++; calls == 2 {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) || calls != 2 {
			t.Errorf("error %v after %d calls", err, calls)
		}
	}},
}

// oddIDs returns ids with characters that are special in a path, a query, JSON or a file name.
func oddIDs() []string {
	return []string{
		"a", "A", "0", "00", "10", "9", "a+b", "a b", "+", " ", "a/b", "../..", ".", "..",
		"a#b", "#", "a%2Fb", "a?b=c&d", "*",
		"_all", "_id", "search", "export", "import", "-", "ä", "東京", "🎉",
		"\"quoted\"", "back\\slash", "new\nline", "tab\t", "nul\x00", "<&>", "5b4bcb8e-7c1e-4d8a-9d7c-0a4d2ab3a001",
		strings.Repeat("x", event.MaxIDBytes), strings.Repeat("ä", event.MaxIDBytes/2),
	}
}

// digitForDigit writes documents that a decoder into float64, a sorter of members or a normaliser
// of text would change.
func digitForDigit(t *testing.T, b *bundle) {
	var ops []sink.Op
	for i, document := range []string{
		`{}`,
		`{"price":12345678901234567890.10,"zero":0.0,"minus":-0,"exp":1E+02,"tiny":1e-400}`,
		`{"id":9007199254740993,"long":123456789012345678901234567890123456789}`,
		`{"z":1,"a":2,"m":3}`,
		`{"text":"Z\u00fcrich Zürich 東京 🎉 \ud83c\udf89 \u2028 \/ <b>&amp;</b> \"q\" \\ \n\t"}`,
		`{"nested":{"numbers":[1,[3.50,[-0.0]]],"objects":[{"deep":[]},{}],"flags":[true,false,null],"empty":""},"null":null}`,
		`{"spa ce":1,"dot.ted":{"x.y":"z"},"_id2":"x","ünï":"c"}`,
		"{\n  \"pretty\" : [ 1 , 2 ]\n}\n",
		`{"looks_like_a_date":"2026-11-20T16:00:00Z","looks_like_a_number":"007","bool_text":"true"}`,
		`{"long_text":"` + strings.Repeat("lorem ipsum ", 20_000) + `"}`,
		`{"one_word":"` + strings.Repeat("x", 40_000) + `"}`,
	} {
		op := put(docID("digits", fmt.Sprintf("%02d", i)), 1, document)
		b.stores(t, op)
		ops = append(ops, op)
	}
	sorted(t, b.all(t), ops)
	huge := put(docID("digits", "huge"), 1, `{"secret":1e400}`)
	if !b.NoHugeNumbers {
		b.stores(t, huge)
		return
	}
	b.rejects(t, huge)
}

// sorted checks that got contains the documents that ops wrote, sorted by collection and id.
func sorted(t *testing.T, got []sink.Stored, ops []sink.Op) {
	t.Helper()
	want := slices.Clone(ops)
	slices.SortFunc(want, func(a, b sink.Op) int {
		return cmp.Or(cmp.Compare(a.Doc.Collection(), b.Doc.Collection()), cmp.Compare(a.Doc.ID(), b.Doc.ID()))
	})
	if len(got) != len(want) {
		t.Errorf("read %d documents, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i].Doc != want[i].Doc {
			t.Fatalf("document %d is %q, want %q", i, got[i].Doc, want[i].Doc)
		}
		equal(t, got[i], want[i])
	}
}

func audited(t *testing.T, b *bundle) {
	a, ok := b.sink.(sink.Auditor)
	if !ok {
		return // this interface is optional
	}
	var ops []sink.Op
	for _, id := range oddIDs() {
		ops = append(ops, put(docID("content", id), 1, `{"n":1}`))
	}
	for i := range 120 {
		ops = append(ops, put(docID("content", fmt.Sprintf("n%03d", i)), 1, `{"n":2}`))
	}
	b.apply(t, append(ops, put(docID("conten", "z"), 1, `{}`), put(docID("content-2", "0"), 1, `{}`))...)
	b.refresh(t)
	slices.SortFunc(ops, func(x, y sink.Op) int { return cmp.Compare(x.Doc.ID(), y.Doc.ID()) })
	for _, from := range []int{0, 1, len(ops) / 2, len(ops) - 1, len(ops)} {
		after := ""
		if from > 0 {
			after = ops[from-1].Doc.ID()
		}
		sorted(t, read(t, func(f func(sink.Stored) error) error {
			return a.Range(t.Context(), "content", after, f)
		}), ops[from:])
	}
	stop := errors.New("stop")
	if err := a.Range(t.Context(), "content", "", func(sink.Stored) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v, want the function's error", err)
	}
	asked := []event.DocID{ops[3].Doc, docID("content", "missing"), docID("no-such-collection", "x"), ops[0].Doc}
	got, err := a.Documents(t.Context(), asked)
	if err != nil || len(got) != len(asked) || got[1].Doc != "" || got[2].Doc != "" {
		t.Fatalf("documents: got %+v, %v", got, err)
	}
	equal(t, got[0], ops[3])
	equal(t, got[3], ops[0])
}

func marks(t *testing.T, b *bundle) {
	m, ok := b.sink.(sink.Marker)
	if !ok {
		return // this interface is optional
	}
	there, gone := put(docID("content", "there"), 1, `{"n":1}`), put(docID("content", "gone"), 1, `{}`)
	b.apply(t, there, gone)
	b.apply(t, del(gone.Doc, 2))
	docs := []event.DocID{docID("no-such-collection", "x"), there.Doc, docID("content", "missing"), gone.Doc, there.Doc}
	got, err := m.Marks(t.Context(), docs)
	if err != nil || len(got) != len(docs) {
		t.Fatalf("got %d marks of %d documents, %v", len(got), len(docs), err)
	}
	want := there.Meta().Stored(there.Doc, nil)
	for i, s := range got {
		switch {
		case docs[i] != there.Doc && s.Doc != "":
			t.Errorf("%s: got %+v, want nothing", docs[i], s)
		case docs[i] == there.Doc && (s.Key != want.Key || s.Version != want.Version || s.Fence != want.Fence ||
			s.Document != nil):
			t.Errorf("got %+v, want %+v", s, want)
		}
	}
	if got, err := m.Marks(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("no documents: got %+v, %v", got, err)
	}
}

// searchable checks that a search finds a write after a refresh. After the refresh that follows a
// delete, no search may find the document.
func searchable(t *testing.T, b *bundle) {
	f, ok := b.sink.(sink.Finder)
	if !ok {
		return // this interface is optional
	}
	there := put(docID("content", "there"), 1, `{"n":1}`)
	for _, doc := range []event.DocID{docID("no-such-collection", "x"), docID("content", "missing"), there.Doc} {
		if s, ok, err := f.Found(t.Context(), doc); ok || err != nil {
			t.Errorf("%s before any write: got %+v, %t, %v", doc, s, ok, err)
		}
	}
	b.apply(t, there)
	b.refresh(t)
	want := there.Meta().Stored(there.Doc, nil)
	s, ok, err := f.Found(t.Context(), there.Doc)
	if !ok || err != nil || s.Key != want.Key || s.Version != want.Version || s.Fence != want.Fence ||
		s.Document != nil {
		t.Errorf("after a write and a refresh: got %+v, %t, %v, want %+v", s, ok, err, want)
	}
	b.apply(t, del(there.Doc, 2))
	b.refresh(t)
	if s, ok, err := f.Found(t.Context(), there.Doc); ok || err != nil {
		t.Errorf("after a delete and a refresh: got %+v, %t, %v", s, ok, err)
	}
}
