// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

var markDocs = []shard.DocID{"content#a", "content#b", "content#c", "content#d", "content#e"}

// Marks reads the marks of many documents with one request, which asks only for the marks. A broken
// mark does not affect the other documents.
func TestMarksOfManyDocumentsAreOneRequest(t *testing.T) {
	t.Parallel()
	e := start(t, respond(200, `{"docs":[
		{"found":true,"_source":{"_lull":{"version":"5","order_key":"k","fence":7,
			"indexed_at":"2026-11-20T16:04:05Z"}}},
		{"found":false},
		{"found":true,"_source":{}},
		{"found":true,"_source":{"_lull":"secret"}},
		{"error":{"type":"index_not_found_exception","reason":"no such index"}}]}`))
	m, ok := any(e.sink(t, nil)).(sink.Marker)
	if !ok {
		t.Fatal("the sink cannot tell marks")
	}
	got, err := m.Marks(t.Context(), markDocs)
	if err != nil || len(got) != len(markDocs) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got[0].Doc != "content#a" || got[0].Key != "k" || got[0].Fence != 7 || got[0].Document != nil {
		t.Errorf("got %+v", got[0])
	}
	for i, want := range map[int]sink.Stored{1: {}, 2: {}, 3: {Doc: "content#d"}, 4: {}} {
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("%s: got %+v, want %+v", markDocs[i], got[i], want)
		}
	}
	if r := e.seen(); len(r) != 1 || r[0].URL.Path != "/_mget" || strings.Count(r[0].body, `"_source":["_lull"]`) != 5 {
		t.Errorf("%d requests, the first %s", len(r), r[0].body)
	}
}

func TestMarksThatDoNotFitAreAnError(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"too few":            `{"docs":[{"found":false}]}`,
		"none":               `{}`,
		"not JSON":           `<html>secret</html>`,
		"one that is denied": `{"docs":[{},{},{},{},{"error":{"type":"security_exception","reason":"secret"}}]}`,
		"several indices": `{"docs":[{},{},{},{},{"error":{"type":"illegal_argument_exception",` +
			`"reason":"alias [content] has more than one index associated with it"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t, respond(200, answer))
			got, err := e.sink(t, nil).Marks(t.Context(), markDocs)
			if err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %+v, %v, want an error without what the engine said", got, err)
			}
		})
	}
}
