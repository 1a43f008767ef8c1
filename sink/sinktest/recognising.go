// SPDX-License-Identifier: Apache-2.0

package sinktest

import (
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
)

var recognising = []duty{
	{"the generation stays the same while documents are written and deleted", generations, func(t *testing.T, b *bundle) {
		doc := docID("content", "a")
		b.apply(t, put(doc, 1, `{"title":"one"}`))
		first := b.generation(t)
		b.apply(t, put(doc, 2, `{"title":"two"}`), put(docID("content", "b"), 2, `{}`))
		b.apply(t, del(doc, 3))
		b.refresh(t)
		if again := b.generation(t); first == "" || again != first {
			t.Errorf("generation %q, then %q: want the same", first, again)
		}
	}},
	{"an index that is created again under its name is another generation", generations, func(t *testing.T, b *bundle) {
		doc := docID("content", "a")
		b.apply(t, put(doc, 1, `{"title":"one"}`))
		first := b.generation(t)
		b.sink = b.Recreate(t, b.sink)
		b.apply(t, put(doc, 1, `{"title":"one"}`))
		if again := b.generation(t); first == "" || again == first {
			t.Errorf("generation %q, then %q: want another one", first, again)
		}
	}},
}

// generation returns the generation of the collection "content", which has documents.
func (b *bundle) generation(t *testing.T) string {
	t.Helper()
	g, ok := b.sink.(sink.Generator)
	if !ok {
		t.Fatal("the sink is not a sink.Generator, although its capabilities say so")
	}
	name, err := g.Generation(t.Context(), event.Collection("content"))
	must(t, err)
	return name
}
