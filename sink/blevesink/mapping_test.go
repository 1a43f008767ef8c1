// SPDX-License-Identifier: Apache-2.0

package blevesink

import (
	"testing"

	index "github.com/blevesearch/bleve_index_api"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// For any bytes, build returns a document that contains the bytes digit for digit, or it returns
// the fault. A field of the document must never have the name of a field of lull.
func FuzzBuild(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":{"b":[1,{"c":"d"}]},"_id":"x","":null}`, `{"a":"\ud83c\udf89\u0000"}`, `[1]`,
		`{"a":[[[`,
	} {
		f.Add([]byte(s))
	}
	m, err := newMapping()
	if err != nil {
		f.Fatal(err)
	}
	x := &Index{analyzer: m.AnalyzerNamed(analyzerName)}
	f.Fuzz(func(t *testing.T, document []byte) {
		plain, want := sink.Plain(document)
		d, fault := x.build(sink.Op{Doc: "c#a", Kind: shard.Put, Document: document})
		if fault != nil {
			if fault.Class == "" || want != nil && *want != *fault {
				t.Fatalf("fault %+v, want %+v", fault, want)
			}
			return
		}
		if want != nil {
			t.Fatalf("built a document that has the fault %v", want)
		}
		counts := make(map[string]int)
		d.VisitFields(func(f index.Field) {
			counts[f.Name()]++
			if f.Options().IsStored() && f.Name() == fieldSource && string(f.Value()) != string(plain) {
				t.Fatalf("source %q, want %q", f.Value(), plain)
			}
			f.Analyze()
		})
		for _, name := range []string{fieldMeta, fieldSource, fieldCollection, fieldMinute} {
			if counts[name] != 1 {
				t.Fatalf("%d fields %s", counts[name], name)
			}
		}
		if counts["_id"] != 0 || counts[fieldAll] != 0 {
			t.Fatalf("fields %v", counts)
		}
	})
}
