// SPDX-License-Identifier: Apache-2.0

package sinktest

import (
	"fmt"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
)

// searching contains the tests of Search. The documents contain plain words only, because engines
// split other texts differently.
var searching = []duty{
	{"search finds written documents by text, field and collection", searches, func(t *testing.T, b *bundle) {
		vienna, berlin, news := docID("content", "vienna"), docID("content", "berlin"), docID("news", "vienna")
		b.apply(t,
			put(vienna, 1,
				`{"title":"British Embassy Vienna","description":"help in Austria","details":{"body":"passports"},"tags":["consular","visa"]}`),
			put(berlin, 1,
				`{"title":"British Embassy Berlin","description":"far from Vienna","details":{"body":"passports"},"year":2026}`),
			put(news, 1, `{"title":"Talks in Vienna","open":true}`),
		)
		b.refresh(t)
		tests := []struct {
			query sink.Query
			want  []event.DocID
		}{
			{sink.Query{Text: "Vienna", Limit: 10}, []event.DocID{berlin, vienna, news}},
			{sink.Query{Text: "Vienna", Field: "title", Limit: 10}, []event.DocID{vienna, news}},
			{sink.Query{Text: "Vienna", Field: "title", Collection: "content", Limit: 10}, []event.DocID{vienna}},
			{sink.Query{Text: "vienna", Collection: "news", Limit: 10}, []event.DocID{news}},
			{sink.Query{Text: "passports", Field: "details.body", Limit: 10}, []event.DocID{berlin, vienna}},
			{sink.Query{Text: "consular", Field: "tags", Limit: 10}, []event.DocID{vienna}},
			{sink.Query{Text: "visa", Limit: 10}, []event.DocID{vienna}},
			{sink.Query{Text: "2026", Field: "year", Limit: 10}, []event.DocID{berlin}},
			{sink.Query{Text: "passports", Field: "title", Limit: 10}, nil},
			{sink.Query{Text: "Vienna", Field: "nosuchfield", Limit: 10}, nil},
			{sink.Query{Text: "Vienna", Collection: "nosuchcollection", Limit: 10}, nil},
			{sink.Query{Text: "nosuchword", Limit: 10}, nil},
			{sink.Query{Text: "embassy Vienna", Limit: 10}, []event.DocID{berlin, vienna}},
			{sink.Query{Text: "embassy Vienna", Field: "title", Limit: 10}, []event.DocID{vienna}},
			{sink.Query{Text: "Vienna nosuchword", Limit: 10}, nil},
			{sink.Query{Text: "( Vienna *", Limit: 10}, []event.DocID{berlin, vienna, news}},
			{sink.Query{Text: "*", Limit: 10}, nil},
			{sink.Query{Text: "Vienna"}, nil},
			{sink.Query{Text: "Vienna", Limit: -1}, nil},
		}
		for _, tt := range tests {
			b.finds(t, tt.query, tt.want...)
		}
	}},
	{"with Prefix, search finds the last word by its beginning", searches, func(t *testing.T, b *bundle) {
		vienna, berlin := docID("content", "vienna"), docID("content", "berlin")
		b.apply(t,
			put(vienna, 1, `{"title":"British Embassy Vienna","details":{"body":"passports"},"open":true,"n":4,"tags":["Österreich"]}`),
			put(berlin, 1, `{"title":"British Embassy Berlin","details":{"body":"far from Vienna"},"year":2026}`),
		)
		b.refresh(t)
		both := []event.DocID{berlin, vienna}
		for _, tt := range []struct {
			text, field string
			whole       bool
			want        []event.DocID
		}{
			{text: "Vien", want: both},
			{text: "VIEN", field: "title", want: both[1:]},
			{text: "brit embassy vien"}, // only the last word may be the beginning of a word
			{text: "british embassy vien", want: both},
			{text: "british embassy vien", field: "title", want: both[1:]},
			{text: "Vienna", want: both}, // a whole word is also found
			{text: "passports", want: both[1:]},
			{text: "passpor", field: "details.body", want: both[1:]},
			{text: "öst", want: both[1:]},
			{text: "vien*", want: both}, // users know * from other search boxes
			{text: "(vien", want: both},
			{text: `"british" | embassy -vien`, field: "title", want: both[1:]}, // the query has no operators
			{text: "Vien "},                                                     // the space ends the word
			{text: "Vien", whole: true},                                         // the query did not ask for prefixes
			{text: "ienna"},
			{text: "*"},
			{text: " "},
			{text: ""},
		} {
			b.finds(t, sink.Query{Text: tt.text, Field: tt.field, Limit: 10, Prefix: !tt.whole}, tt.want...)
		}
	}},
	{"search returns the document and its metadata", searches, func(t *testing.T, b *bundle) {
		op := put(docID("content", "a"), 3, `{"title":"Vienna","n":1.10}`)
		b.apply(t, op)
		b.refresh(t)
		found := b.found(t, sink.Query{Text: "Vienna", Limit: 1})
		if len(found) != 1 {
			t.Fatalf("found %+v, want one document", found)
		}
		equal(t, found[0], op)
	}},
	{"search returns the best result first, and not more than the limit", searches, func(t *testing.T, b *bundle) {
		for i := range 20 {
			b.apply(t, put(docID("content", fmt.Sprint(i)), 1,
				fmt.Sprintf(
					`{"title":"a very long title about a walk number %d along the river in Vienna and elsewhere"}`, i)))
		}
		best := docID("content", "best")
		b.apply(t, put(best, 1, `{"title":"Vienna Vienna"}`))
		b.refresh(t)
		if got := b.search(t, sink.Query{Text: "Vienna", Field: "title", Limit: 5}); len(got) != 5 || got[0] != best {
			t.Errorf("found %q, want five, %q first", got, best)
		}
	}},
	{"search does not find deleted or replaced documents", searches, func(t *testing.T, b *bundle) {
		replaced, deleted := docID("content", "replaced"), docID("content", "deleted")
		b.apply(t, put(replaced, 1, `{"title":"winter"}`), put(deleted, 1, `{"title":"winter"}`))
		b.apply(t, put(replaced, 2, `{"title":"summer"}`), del(deleted, 2))
		b.refresh(t)
		b.finds(t, sink.Query{Text: "winter", Limit: 10})
		b.finds(t, sink.Query{Text: "summer", Limit: 10}, replaced)
	}},
}
