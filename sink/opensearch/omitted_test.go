// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
)

// The name of a field comes from documents, so it may be content.
func TestOmittedNamesOnlyWhatLooksLikeAName(t *testing.T) {
	t.Parallel()
	hit := `{"_id":"a","_ignored":["price","it is a secret","` + strings.Repeat("x", 65) + `","a.b"]}`
	e := start(t, respond(200, `{"hits":{"total":{"value":40},"hits":[`+strings.Repeat(hit+",", 20)+hit+`]}}`))
	got, err := e.sink(t, nil).Omitted(t.Context(), "content")
	if err != nil || got.Documents != 40 || len(got.Some) != sink.MaxOmitted || got.Some[0] != "content#a" ||
		!reflect.DeepEqual(got.Fields, []string{"a.b", "price"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRealServerOmitsWhatTheMappingDoesNotTake(t *testing.T) {
	t.Parallel()
	s := real(t, nil)
	write(t, s, sink.Applied, put("content#a", 1, `{"v":1}`), put("content#b", 1, `{"w":"x"}`))
	if got, err := s.Omitted(t.Context(), "content"); err != nil || got.Documents != 0 {
		t.Errorf("before: %+v, %v", got, err)
	}
	write(t, s, sink.Applied, put("content#c", 1, `{"v":"many"}`))
	refresh(t, s)
	want := sink.Omitted{Documents: 1, Some: []event.DocID{"content#c"}, Fields: []string{"v"}}
	if got, err := s.Omitted(t.Context(), "content"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if got, err := s.Omitted(t.Context(), "none"); err != nil || got.Documents != 0 {
		t.Errorf("without an index: %+v, %v", got, err)
	}
}
