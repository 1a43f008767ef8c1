package sinktest

import (
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
	made    = ".r20261122100000" // ends the name of a new index
)

// rebuilding are the duties of a sink.Rebuilder.
var rebuilding = []duty{
	{"a new index has every document in its version, and no reader finds it", rebuilds, func(t *testing.T, b *bundle) {
		r, from, into := b.beside(t)
		var want []sink.Versioned
		for i := range 7 {
			op := put(docID("content", fmt.Sprint("d", i)), event.Fence(100+i), `{"n":1}`)
			b.apply(t, op)
			want = append(want, sink.Versioned{ID: op.Doc.ID(), Version: 100 + int64(i)})
		}
		b.apply(
			t,
			put(docID("other", "x"), 5, `{}`),
			put(docID("content", "gone"), 5, `{}`),
			del(docID("content", "gone"), 6),
		)
		b.fill(t, r, from, into)
		if got := walked(t, r, into); !slices.Equal(got, want) {
			t.Errorf("the new index holds %v, want %v", got, want)
		}
		if got := b.all(t); len(got) != 8 {
			t.Errorf("readers find %d documents, want 8", len(got))
		}
		ids := []string{"d0", "gone", "d6"}
		if got, err := r.VersionsOf(t.Context(), into, ids); err != nil || !slices.Equal(got, []int64{100, -1, 106}) {
			t.Errorf("versions of %v: %v, %v", ids, got, err)
		}
	}},
	{"what is newer in a new index stays there, deletes too", rebuilds, func(t *testing.T, b *bundle) {
		r, from, into := b.beside(t)
		a, d, e := docID("content", "a"), docID("content", "d"), docID("content", "e")
		b.apply(t, put(a, 10, `{"n":1}`), put(d, 10, `{"n":1}`), put(e, 10, `{"n":1}`))
		kinds(
			t,
			r.Into(rebuilt, into).Write(t.Context(), []sink.Op{put(a, 11, `{"n":2}`), del(d, 11)}),
			sink.Applied,
			sink.Applied,
		)
		b.fill(t, r, from, into)
		want := []sink.Versioned{{ID: "a", Version: 11}, {ID: "e", Version: 10}}
		if got := walked(t, r, into); !slices.Equal(got, want) {
			t.Errorf("the new index holds %v, want %v", got, want)
		}
		out, err := r.Transfer(t.Context(), rebuilt, from, into, []string{"a", "missing", "e"})
		if err != nil {
			t.Fatal(err)
		}
		kinds(t, out, sink.Newer, sink.Applied, sink.Applied)
		kinds(t, r.Erase(t.Context(), rebuilt, into, []sink.Versioned{{ID: "a", Version: 10}, {ID: "e", Version: 10}}),
			sink.Newer, sink.Applied)
		if got := walked(t, r, into); !slices.Equal(got, want[:1]) {
			t.Errorf("the new index holds %v, want %v", got, want[:1])
		}
	}},
	{"the name is switched in one step, twice is once", rebuilds, func(t *testing.T, b *bundle) {
		r, from, into := b.beside(t)
		old, next := put(docID("content", "a"), 10, `{"n":1}`), put(docID("content", "a"), 11, `{"n":2}`)
		b.apply(t, old)
		kinds(t, r.Into(rebuilt, into).Write(t.Context(), []sink.Op{next}), sink.Applied)
		for range 2 {
			if err := r.Switch(t.Context(), rebuilt, from, into); err != nil {
				t.Fatal(err)
			}
		}
		b.holds(t, next)
		last := put(docID("content", "a"), 12, `{"n":3}`)
		b.apply(t, last) // by the name: the sink knows that it moved
		kinds(t, r.Into(rebuilt, into).Write(t.Context(), []sink.Op{last}), sink.Applied)
		for range 2 {
			if err := r.Settle(t.Context(), into); err != nil {
				t.Fatal(err)
			}
		}
		b.holds(t, last)
		at, err := r.Standing(t.Context(), rebuilt)
		if err != nil || at.Index != into || !at.Alias || at.Name == into {
			t.Errorf("the name stands for %+v, %v; want %s", at, err, into)
		}
		for range 2 {
			if err := r.Drop(t.Context(), from); err != nil {
				t.Fatal(err)
			}
		}
		b.holds(t, last)
	}},
	{"an index that was dropped is not made by a write", rebuilds, func(t *testing.T, b *bundle) {
		r, from, into := b.beside(t)
		op := put(docID("content", "a"), 10, `{"n":1}`)
		b.apply(t, op)
		if err := r.Drop(t.Context(), into); err != nil {
			t.Fatal(err)
		}
		next := r.Into(rebuilt, into)
		kinds(t, next.Write(t.Context(), []sink.Op{op, del(op.Doc, 10)}), sink.Configuration, sink.Configuration)
		if _, err := r.Transfer(t.Context(), rebuilt, from, into, []string{"a"}); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Earlier(t.Context(), rebuilt); err != nil || slices.Contains(got, into) {
			t.Errorf("%v, %v: it is there again", got, err)
		}
		b.holds(t, op)
	}},
	{"the index that a rebuild left is found", rebuilds, func(t *testing.T, b *bundle) {
		r, from, into := b.beside(t)
		b.apply(t, put(docID("content", "a"), 10, `{"n":1}`))
		second := into[:len(into)-1] + "1"
		for _, step := range [][2]string{{from, into}, {into, second}} {
			err := r.Create(t.Context(), sink.NewIndex{Collection: rebuilt, Name: step[1], Like: step[0]})
			if err != nil {
				t.Fatal(err)
			}
			b.fill(t, r, step[0], step[1])
			if err := errors.Join(r.Switch(t.Context(), rebuilt, step[0], step[1]), r.Settle(t.Context(),
				step[1])); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := r.Earlier(t.Context(), rebuilt); err != nil || !slices.Contains(got, into) ||
			slices.Contains(got, second) {
			t.Errorf("earlier indices are %v, %v; want %s", got, err, into)
		}
	}},
}

// beside makes a new index beside the one in use.
func (b *bundle) beside(t *testing.T) (r sink.Rebuilder, from, into string) {
	t.Helper()
	r, ok := b.sink.(sink.Rebuilder)
	if !ok {
		t.Fatalf("%T is not a sink.Rebuilder", b.sink)
	}
	first := put(docID("content", "first"), 1, `{}`)
	b.apply(t, first, del(first.Doc, 2)) // so that there is an index
	at, err := r.Standing(t.Context(), rebuilt)
	if err != nil {
		t.Fatal(err)
	}
	into = at.Name + made
	for range 2 {
		if err := r.Create(t.Context(), sink.NewIndex{Collection: rebuilt, Name: into, Like: at.Index}); err != nil {
			t.Fatal(err)
		}
	}
	return r, at.Index, into
}

// fill copies by the engine, or document by document where it cannot.
func (b *bundle) fill(t *testing.T, r sink.Rebuilder, from, into string) {
	t.Helper()
	b.refresh(t)
	_, err := r.Fill(t.Context(), sink.Fill{From: from, Into: into})
	if errors.Is(err, sink.ErrNoCopy) {
		err = r.Walk(t.Context(), from, func(docs []sink.Versioned) error {
			ids := make([]string, len(docs))
			for i, d := range docs {
				ids[i] = d.ID
			}
			_, err := r.Transfer(t.Context(), rebuilt, from, into, ids)
			return err
		})
	}
	if err == nil {
		err = r.StopFill(t.Context(), into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// walked are all documents of an index, by id.
func walked(t *testing.T, r sink.Rebuilder, index string) (all []sink.Versioned) {
	t.Helper()
	err := r.Walk(t.Context(), index, func(docs []sink.Versioned) error {
		all = append(all, docs...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b sink.Versioned) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return all
}

func kinds(t *testing.T, got []sink.Outcome, want ...sink.OutcomeKind) {
	t.Helper()
	for i, o := range got {
		if len(got) != len(want) || o.Kind != want[i] {
			t.Errorf("outcome %d of %d is %s (%s), want %v", i, len(got), o.Kind, o.Reason, want)
		}
	}
}
