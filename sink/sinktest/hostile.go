// SPDX-License-Identifier: Apache-2.0

package sinktest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lullhq/lull/sink"
)

// hostile returns documents with which a sender could break an engine, a mapping or a reader. An
// engine may refuse each of these documents.
func hostile() []string {
	deep := func(n int, open, end string) string {
		return `{"deep":` + strings.Repeat(open, n) + "1" + strings.Repeat(end, n) + `}`
	}
	many := make(map[string]int)
	for i := range 2_000 {
		many[fmt.Sprintf("field%d", i)] = i
	}
	fields, _ := json.Marshal(many)
	return []string{
		`{"":1}`, `{" ":1}`, `{".":1}`, `{"a..b":1}`, `{"$":{"$ne":1}}`, `{"__proto__":{"x":1},"constructor":1}`,
		`{"_id":"x","_index":"y","_source":{},"_type":"z"}`, `{"id":"another","fence":9,"search":"x","document":null}`,
		`{"_lull_text":"spoilt","_lull.fence":9,"_Lull":1}`, `{"twice":1,"twice":{"x":1}}`,
		`{"mixed":[1,"x",{"y":[]},null,true]}`, `{"mixed":{"y":1}}`, `{"mixed":"text"}`,
		`{"n":1}`, `{"n":"one"}`, `{"n":{"m":1}}`, `{"when":"2026-11-20"}`, `{"when":"soon"}`,
		`{"nul":"a\u0000b"}`, `{"half":"\ud800"}`, `{"a\u0000b":1}`, `{"rtl":"\u202e\ufeff","zalgo":"Z\u0351\u036b"}`,
		`{"html":"<script>alert(1)</script>","sql":"'); DROP TABLE x; --","line":"a\n{\"delete\":{}}\nb"}`,
		deep(200, "[", "]"), deep(200, `{"a":`, "}"), deep(3_000, "[", "]"), string(fields),
		`{"digits":` + strings.Repeat("9", 2_000) + `}`, `{"long":[` + strings.Repeat("0,", 20_000) + `0]}`,
		`{"` + strings.Repeat("name", 5_000) + `":1}`, `{"words":"` + strings.Repeat("ab ", 100_000) + `"}`,
	}
}

// hostileDocuments writes each hostile document in a request with two normal documents. The normal
// documents must be written even if the engine refuses the hostile one. A later normal document
// with a new field must be written, too.
func hostileDocuments(t *testing.T, b *bundle) {
	for i, document := range hostile() {
		before := put(docID("hostile", fmt.Sprintf("%02d-before", i)), 1, `{"title":"before"}`)
		bad := put(docID("hostile", fmt.Sprintf("%02d", i)), 1, document)
		after := put(docID("hostile", fmt.Sprintf("%02d-later", i)), 1, fmt.Sprintf(`{"title":"after","own%d":"x"}`, i))
		outcomes := outcomes(t.Context(), t, b.sink, []sink.Op{before, bad, after})
		for at, op := range []sink.Op{before, after} {
			if o := outcomes[2*at]; o.Kind != sink.Applied {
				t.Errorf("%.60s: another document is %s (%s)", document, o.Kind, o.Reason)
				continue
			}
			b.holds(t, op)
		}
		switch o := outcomes[1]; {
		case o.Kind == sink.Applied:
			b.holds(t, bad)
		case o.Kind != sink.Rejected && o.Kind != sink.Refused:
			t.Errorf("%.60s: %s (%s), want applied, or rejected because of the document", document, o.Kind, o.Reason)
		case o.Reason == "" || len(o.Reason) > 200:
			t.Errorf("%.60s: reason %.300q", document, o.Reason)
		}
		// the hostile document must not change the engine so that it refuses documents which it
		// accepted before
		if i%10 == 0 {
			next := put(before.Doc, 2, fmt.Sprintf(`{"title":"again","new%d":[1,2]}`, i))
			b.stores(t, next)
		}
	}
}
