// SPDX-License-Identifier: Apache-2.0

package sinktest

import (
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
)

// Place says what a user of the engine already has where lull wants to write the collection
// "content".
type Place string

// The places.
const (
	Empty     Place = "an index without documents"
	Unmapped  Place = "an index without a mapping"
	Aliased   Place = "an alias of an index"
	Templated Place = "a template for the name of the index"
	Beside    Place = "indices with similar names"
	ReadOnly  Place = "an index that takes no writes"
)

// Places returns all places.
func Places() []Place { return []Place{Empty, Unmapped, Aliased, Templated, Beside, ReadOnly} }

// Owned says what a kind of sink must do at a place, and how to create the place. If the engine
// cannot have such a place, Owned says why.
type Owned struct {
	// None says why a user of the engine cannot have such a place, or why lull never meets it. If
	// None is set, the other fields are empty.
	None string
	// Open creates the place in an engine, and returns a sink for that engine. theirs returns a
	// description of everything that belongs to the user: names, the indices behind the names,
	// mappings and documents. The description must be the same before and after lull's work. theirs
	// may also create something as the user, describe the result and delete it.
	Open func(t *testing.T) (s sink.Sink, theirs func(t *testing.T) string)
	// Prepare is a part of the error that Prepare of the sink must return. The text is empty if
	// Prepare must succeed.
	Prepare string
	// Put is the wanted outcome of writing a document at the place.
	Put sink.OutcomeKind
}

// Own tests that a kind of sink neither hides nor changes anything that belongs to a user. The
// table of the kind must have an entry for every place.
func Own(t *testing.T, kind string, table map[Place]Owned) {
	t.Helper()
	for _, place := range Places() {
		o, given := table[place]
		if !given || (o.None == "") == (o.Open == nil) {
			t.Errorf("%s: the table says neither what happens with %s, nor why it cannot exist", kind, place)
			continue
		}
		if o.None != "" {
			continue
		}
		t.Run(kind+": "+string(place), func(t *testing.T) {
			t.Parallel()
			s, theirs := o.Open(t)
			o.check(t, s, theirs)
		})
	}
	for place := range table {
		if !slices.Contains(Places(), place) {
			t.Errorf("%s: the place %q is unknown", kind, place)
		}
	}
}

// check calls everything that lull calls on a sink. After each call, check compares everything that
// belongs to the user with the state before.
func (o Owned) check(t *testing.T, s sink.Sink, theirs func(t *testing.T) string) {
	t.Helper()
	was := theirs(t)
	same := func(step string) {
		t.Helper()
		if is := theirs(t); is != was {
			t.Errorf("%s: the sink changed the user's data:\nwas %s\nis  %s", step, was, is)
		}
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
	same("ping")
	o.reads(t, s)
	same("reading")
	if p, ok := s.(sink.Preparer); ok {
		for range 2 {
			err := p.Prepare(t.Context())
			if o.Prepare == "" && err != nil || o.Prepare != "" && (err == nil || !strings.Contains(err.Error(), o.Prepare)) {
				t.Errorf("prepare: got %v, want %q", err, o.Prepare)
			}
		}
		same("preparing")
	}
	op := put(docID("content", "a"), 1, `{"title":"lull wrote this","n":1}`)
	checkKinds(t, outcomes(t.Context(), t, s, []sink.Op{op}), o.Put)
	same("writing")
	o.reads(t, s)
	if o.Put != sink.Applied {
		return
	}
	if r, ok := s.(sink.Reader); ok {
		if got, found, err := r.Get(t.Context(), op.Doc); err != nil || !found {
			t.Errorf("get the written document: %t, %v", found, err)
		} else {
			equal(t, got, op)
		}
	}
	gone := del(op.Doc, 2)
	gone.Present = true
	checkKinds(t, outcomes(t.Context(), t, s, []sink.Op{gone}), sink.Applied)
	same("deleting")
}

// reads calls every method that reads a sink. No method may fail, or return a document of the user
// as if lull had written it.
func (o Owned) reads(t *testing.T, s sink.Sink) {
	t.Helper()
	written := docID("content", "a")
	if r, ok := s.(sink.Reader); ok {
		lulls := func(d sink.Stored) error {
			if d.Doc != written {
				t.Errorf("%s is not lull's", d.Doc)
			}
			return nil
		}
		must(t, r.All(t.Context(), lulls))
		found, err := r.Search(t.Context(), sink.Query{Text: "mine", Collection: "content", Limit: 10})
		must(t, err)
		for _, d := range found {
			must(t, lulls(d))
		}
	}
	if r, ok := s.(sink.Auditor); ok { // Range also returns the user's documents
		must(t, r.Range(t.Context(), "content", "", func(sink.Stored) error { return nil }))
	}
	if m, ok := s.(sink.Marker); ok {
		marks, err := m.Marks(t.Context(), []event.DocID{docID("content", "mine")})
		if err != nil || len(marks) != 1 || marks[0].Doc != "" {
			t.Errorf("marks of the user's document: %+v, %v", marks, err)
		}
	}
	if sampler, ok := s.(sink.Sampler); ok {
		if doc, found, err := sampler.Sample(t.Context(), "content"); err != nil || found && doc != written {
			t.Errorf("sample: %s, %v", doc, err)
		}
	}
	if g, ok := s.(sink.Generator); ok {
		if _, err := g.Generation(t.Context(), "content"); err != nil {
			t.Errorf("generation: %v", err)
		}
	}
}
