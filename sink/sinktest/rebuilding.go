// SPDX-License-Identifier: Apache-2.0

package sinktest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
)

func rebuilds(o Options) bool { return o.Rebuilds }

const (
	rebuilt = event.Collection("content")
	made    = ".r20261122100000" // the end of the name of a new index
)

// rebuilding contains the tests of a sink.Rebuilder.
var rebuilding = []duty{
	{
		"a new index has every document with its version, and readers do not see it", rebuilds,
		func(t *testing.T, b *bundle) {
			r, from, into := b.beside(t)
			var want []sink.Versioned
			for i := range 7 {
				op := put(docID("content", fmt.Sprint("d", i)), event.Fence(100+i), `{"n":1}`)
				b.apply(t, op)
				want = append(want, sink.Versioned{ID: op.Doc.ID(), Version: 100 + int64(i)})
			}
			gone := docID("content", "gone")
			b.apply(t, put(docID("other", "x"), 5, `{}`), put(gone, 5, `{}`), del(gone, 6))
			b.fill(t, r, from, into)
			walked(t, r, into, want)
			if got := b.all(t); len(got) != 8 {
				t.Errorf("readers find %d documents, want 8", len(got))
			}
			ids := []string{"d0", "gone", "d6"}
			got, err := r.VersionsOf(t.Context(), into, ids)
			if err != nil || !slices.Equal(got, []int64{100, -1, 106}) {
				t.Errorf("versions of %v: %v, %v", ids, got, err)
			}
		},
	},
	{"a newer version in a new index stays there, and so does a newer delete", rebuilds, func(t *testing.T, b *bundle) {
		r, from, into := b.beside(t)
		a, d, e := docID("content", "a"), docID("content", "d"), docID("content", "e")
		b.apply(t, put(a, 10, `{"n":1}`), put(d, 10, `{"n":1}`), put(e, 10, `{"n":1}`))
		newer := []sink.Op{put(a, 11, `{"n":2}`), del(d, 11)}
		checkKinds(t, r.Into(rebuilt, into).Write(t.Context(), newer), sink.Applied, sink.Applied)
		b.fill(t, r, from, into)
		want := []sink.Versioned{{ID: "a", Version: 11}, {ID: "e", Version: 10}}
		walked(t, r, into, want)
		out, err := r.Transfer(t.Context(), rebuilt, from, into, []string{"a", "missing", "e"})
		must(t, err)
		checkKinds(t, out, sink.Newer, sink.Applied, sink.Applied)
		erased := []sink.Versioned{{ID: "a", Version: 10}, {ID: "e", Version: 10}}
		checkKinds(t, r.Erase(t.Context(), rebuilt, into, erased),
			sink.Newer, sink.Applied)
		walked(t, r, into, want[:1])
	}},
	{"the name is switched in one step, and a second switch changes nothing", rebuilds, func(t *testing.T, b *bundle) {
		r, from, into := b.beside(t)
		old, next := put(docID("content", "a"), 10, `{"n":1}`), put(docID("content", "a"), 11, `{"n":2}`)
		b.apply(t, old)
		checkKinds(t, r.Into(rebuilt, into).Write(t.Context(), []sink.Op{next}), sink.Applied)
		for range 2 {
			must(t, r.Switch(t.Context(), rebuilt, from, into))
		}
		b.holds(t, next)
		last := put(docID("content", "a"), 12, `{"n":3}`)
		b.apply(t, last) // this write uses the collection's name: the sink must accept that the name was switched
		checkKinds(t, r.Into(rebuilt, into).Write(t.Context(), []sink.Op{last}), sink.Applied)
		for range 2 {
			must(t, r.Settle(t.Context(), into))
		}
		b.holds(t, last)
		at, err := r.Standing(t.Context(), rebuilt)
		if err != nil || at.Index != into || !at.Alias || at.Name == into {
			t.Errorf("the name points to %+v, %v; want %s", at, err, into)
		}
		for range 2 {
			must(t, r.Drop(t.Context(), from))
		}
		b.holds(t, last)
	}},
	{"a write does not create a dropped index again", rebuilds, func(t *testing.T, b *bundle) {
		r, from, into := b.beside(t)
		op := put(docID("content", "a"), 10, `{"n":1}`)
		b.apply(t, op)
		must(t, r.Drop(t.Context(), into))
		next := r.Into(rebuilt, into)
		checkKinds(t, next.Write(t.Context(), []sink.Op{op, del(op.Doc, 10)}), sink.Configuration, sink.Configuration)
		if _, err := r.Transfer(t.Context(), rebuilt, from, into, []string{"a"}); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Earlier(t.Context(), rebuilt); err != nil || slices.Contains(got, into) {
			t.Errorf("%v, %v: the dropped index exists again", got, err)
		}
		b.holds(t, op)
	}},
	{"the previous index of a rebuild is listed", rebuilds, func(t *testing.T, b *bundle) {
		r, from, into := b.beside(t)
		b.apply(t, put(docID("content", "a"), 10, `{"n":1}`))
		second := into[:len(into)-1] + "1"
		for _, step := range [][2]string{{from, into}, {into, second}} {
			must(t, r.Create(t.Context(), sink.NewIndex{Collection: rebuilt, Name: step[1], Like: step[0]}))
			b.fill(t, r, step[0], step[1])
			must(t, r.Switch(t.Context(), rebuilt, step[0], step[1]))
			must(t, r.Settle(t.Context(), step[1]))
		}
		if got, err := r.Earlier(t.Context(), rebuilt); err != nil || !slices.Contains(got, into) ||
			slices.Contains(got, second) {
			t.Errorf("earlier indices are %v, %v; want %s", got, err, into)
		}
	}},
}

// beside creates a second index for the collection "content".
func (b *bundle) beside(t *testing.T) (r sink.Rebuilder, from, into string) {
	t.Helper()
	r, ok := b.sink.(sink.Rebuilder)
	if !ok {
		t.Fatalf("%T is not a sink.Rebuilder", b.sink)
	}
	first := put(docID("content", "first"), 1, `{}`)
	b.apply(t, first, del(first.Doc, 2)) // so that the engine creates the index
	at, err := r.Standing(t.Context(), rebuilt)
	must(t, err)
	into = at.Name + made
	for range 2 {
		must(t, r.Create(t.Context(), sink.NewIndex{Collection: rebuilt, Name: into, Like: at.Index}))
	}
	return r, at.Index, into
}

// fill lets the engine copy an index. If the engine cannot copy, fill copies each document with
// Transfer.
func (b *bundle) fill(t *testing.T, r sink.Rebuilder, from, into string) {
	t.Helper()
	b.refresh(t)
	_, err := r.Fill(t.Context(), sink.Fill{From: from, Into: into})
	if errors.Is(err, sink.ErrNoCopy) {
		var ids []string
		for _, d := range allOf(t, r, from) {
			ids = append(ids, d.ID)
		}
		_, err = r.Transfer(t.Context(), rebuilt, from, into, ids)
	}
	if err == nil {
		err = r.StopFill(t.Context(), into)
	}
	must(t, err)
}

// allOf walks through an index.
func allOf(t *testing.T, r sink.Rebuilder, index string) (all []sink.Versioned) {
	t.Helper()
	for place := ""; ; {
		docs, next, err := r.Walk(t.Context(), index, place)
		must(t, err)
		all = append(all, docs...)
		if place = next; place == "" {
			return all
		}
	}
}

// walked checks which documents, with which versions, an index has.
func walked(t *testing.T, r sink.Rebuilder, index string, want []sink.Versioned) {
	t.Helper()
	got := slices.SortedFunc(slices.Values(allOf(t, r, index)), func(a, b sink.Versioned) int {
		return cmp.Compare(a.ID, b.ID)
	})
	if !slices.Equal(got, want) {
		t.Errorf("the index %s holds %v, want %v", index, got, want)
	}
}
