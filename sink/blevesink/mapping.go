// SPDX-License-Identifier: Apache-2.0

package blevesink

import (
	"fmt"
	"maps"
	"slices"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/token/length"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/token/porter"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/mapping"
	index "github.com/blevesearch/bleve_index_api"
	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Limits on documents. A document that exceeds a limit is rejected, and a retry cannot help. With
// its default settings, OpenSearch would also reject the document, or could not search in it.
const (
	MaxDocumentBytes = 10 << 20 // size of a document without insignificant space
	MaxDepth         = 100      // number of objects and arrays within each other
	MaxFields        = 1_000    // number of different paths, like OpenSearch's index.mapping.total_fields.limit
	MaxPathBytes     = 1_024    // size of one path
)

// Names of Bleve's fields. The fields of a document have a prefix, so that they differ from these
// names and from Bleve's _id.
const (
	fieldMeta       = "meta"       // stored: sink.Meta as JSON
	fieldSource     = "source"     // stored: the plain document; absent for a tombstone
	fieldCollection = "collection" // indexed as one term
	fieldMinute     = "minute"     // indexed: the minute of the fence; Newest reads it
	fieldAll        = "all"        // every word of the document
	prefixOwn       = "doc."
)

// analyzerName is the name of an analyzer for English that omits very long tokens. A token of a
// megabyte is not a word, and Bleve's dictionaries cannot handle such a token.
const (
	analyzerName   = "lull_english"
	lengthName     = "lull_length"
	longestTokenIn = 128 // characters
)

// newMapping returns the mapping, which says how queries are analysed. This package itself splits
// documents into fields, so the mapping does not describe documents.
func newMapping() (*mapping.IndexMappingImpl, error) {
	m := bleve.NewIndexMapping()
	m.DefaultMapping.Dynamic = false
	m.DefaultAnalyzer = analyzerName
	m.DefaultField = fieldAll
	err := m.AddCustomTokenFilter(lengthName, map[string]any{
		"type": length.Name, "max": float64(longestTokenIn), "min": float64(1),
	})
	if err == nil {
		err = m.AddCustomAnalyzer(analyzerName, map[string]any{
			"type":          custom.Name,
			"tokenizer":     unicode.Name,
			"token_filters": []any{lengthName, en.PossessiveName, lowercase.Name, en.StopName, porter.Name},
		})
	}
	if err != nil {
		return nil, fmt.Errorf("describe index: %w", err)
	}
	return m, nil
}

// build converts an op into a document of Bleve. A delete becomes a tombstone. The error says why
// the document can never be stored.
func (x *Index) build(op sink.Op) (*document.Document, *sink.DocumentError) {
	d := document.NewDocument(string(op.Doc))
	d.AddField(document.NewTextFieldWithIndexingOptions(fieldMeta, nil, op.Meta().JSON(), index.StoreField))
	d.AddField(document.NewTextFieldCustom(fieldMinute, nil, minuteTerm(op.Fence), index.IndexField, nil))
	if op.Kind == shard.Delete {
		return d, nil
	}
	plain, fault := sink.Plain(op.Document)
	if fault != nil {
		return nil, fault
	}
	if len(plain) > MaxDocumentBytes {
		return nil, &sink.DocumentError{Class: sink.TooLarge}
	}
	w := words{}
	if fault := w.object(gjson.ParseBytes(plain), "", 1); fault != nil {
		return nil, fault
	}
	d.AddField(document.NewTextFieldWithIndexingOptions(fieldSource, nil, plain, index.StoreField))
	d.AddField(document.NewTextFieldCustom(fieldCollection, nil, []byte(op.Doc.Collection()), index.IndexField, nil))
	for _, path := range slices.Sorted(maps.Keys(w)) {
		d.AddField(document.NewTextFieldCustom(prefixOwn+path, nil, w[path], index.IndexField, x.analyzer))
	}
	d.AddField(document.NewCompositeFieldWithIndexingOptions(fieldAll, true, nil,
		[]string{fieldMeta, fieldSource, fieldCollection, fieldMinute, "_id"}, index.IndexField))
	return d, nil
}

// words maps each path of a document to the values at that path, one value a line.
type words map[string][]byte

// object adds all values of a valid object or array. Elements of an array get the path of the
// array.
func (w words) object(v gjson.Result, path string, depth int) (fault *sink.DocumentError) {
	if depth > MaxDepth {
		return &sink.DocumentError{Class: sink.TooDeep}
	}
	array := v.IsArray()
	v.ForEach(func(name, value gjson.Result) bool {
		p := path
		if !array {
			if p != "" {
				p += "."
			}
			p += name.String()
		}
		switch {
		case len(p) > MaxPathBytes:
			fault = &sink.DocumentError{Class: sink.LongFieldName}
		case value.Type == gjson.JSON:
			fault = w.object(value, p, depth+1)
		case value.Type == gjson.String:
			fault = w.add(p, value.Str)
		case value.Type != gjson.Null:
			fault = w.add(p, value.Raw)
		}
		return fault == nil
	})
	return fault
}

func (w words) add(path, value string) *sink.DocumentError {
	text, ok := w[path]
	if !ok && len(w) == MaxFields {
		return &sink.DocumentError{Class: sink.TooManyFields}
	}
	if len(text) > 0 {
		text = append(text, '\n')
	}
	w[path] = append(text, value...)
	return nil
}
