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

// Limits on documents. A document above one is rejected for good. OpenSearch would reject it by
// default, or it could not be searched.
const (
	MaxDocumentBytes = 10 << 20 // without insignificant space
	MaxDepth         = 100      // objects and arrays inside one another
	MaxFields        = 1_000    // distinct paths; OpenSearch's index.mapping.total_fields.limit
	MaxPathBytes     = 1_024    // of a path
)

// Names of Bleve's fields. The fields of a document have a prefix, so that none is mistaken for one
// of these or for Bleve's _id.
const (
	fieldMeta       = "meta"       // stored: sink.Meta as JSON
	fieldSource     = "source"     // stored: the plain document; absent for a tombstone
	fieldCollection = "collection" // indexed as it is
	fieldMinute     = "minute"     // indexed: the minute of the fence, for Newest
	fieldAll        = "all"        // every word of the document
	prefixOwn       = "doc."
)

// analyzerName is English with an end: a token of a megabyte is not a word, and Bleve's
// dictionaries choke on it.
const (
	analyzerName   = "lull_english"
	lengthName     = "lull_length"
	longestTokenIn = 128 // characters
)

// newMapping says how queries are analysed. Documents are taken apart by this package, not by the
// mapping.
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

// build makes Bleve's document of an op, a tombstone of a delete. The error is the document's
// fault, for good.
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

// words is a document's text by path: values, a line each.
type words map[string][]byte

// object walks a valid object or array. Elements of an array have the array's path.
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
