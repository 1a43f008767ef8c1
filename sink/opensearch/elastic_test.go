// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
	"github.com/lullhq/lull/sink/opensearch"
	"github.com/lullhq/lull/sink/sinktest"
)

// documentParsing is Elasticsearch's type for most faults of a document.
const documentParsing = "document_parsing_exception"

// elasticRows returns the answers of Elasticsearch that differ from those of OpenSearch. The texts
// come from 8.19 and 9.2, and contain the word secret if the engine quotes content.
func elasticRows() []row {
	unparsed := func(engine, field, why, settings, document string) row {
		reason := documentParsing
		if field != "" {
			reason += ": field " + field
		}
		r := row{
			Answer: answers(putOnly(sink.Outcome{Kind: sink.Rejected, Apart: true, Reason: reason}), engine,
				"item 400 `"+documentParsing+"`", "unless the index does not look into it"),
			answer: each(400, 0, map[string]any{
				"type": documentParsing, "reason": "[1:10] failed to parse: " + why,
				"caused_by": failure("illegal_argument_exception", why),
			}),
			resolve: anIndex, real: withIndex(settings),
		}
		r.Document = document
		return r
	}
	const deep = "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a"
	nested := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}" }
	taken := answers(same(sink.Applied, ""), "finds arrays nested 30 deep", "item 201", "its limit is 1,000")
	taken.Document = nested(30)
	return []row{
		unparsed(
			"has reached the index's field limit",
			"",
			"Limit of total fields [5] has been exceeded while adding new fields [6]",
			`{"settings":{"index.mapping.total_fields.limit":5},"mappings":{"properties":{"_lull":{"type":"object","enabled":false}}}}`,
			`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}`,
		),
		unparsed(
			"cannot parse a field",
			"title",
			"failed to parse field [title] of type [long] in document with id 'secret'. Preview of field's value: 'secret'",
			`{"mappings":{"properties":{"title":{"type":"long"}}}}`,
			"",
		),
		unparsed("finds a field without a name", "", "field name cannot be an empty string", "{}", `{"a":{"":1}}`),
		unparsed("finds a field whose name is dots", "", "field name cannot contain only dots", "{}", `{"..":1}`),
		unparsed(
			"finds a field whose name has a dot too many",
			"",
			"field name cannot contain only whitespace: ['secret..b']",
			"{}",
			`{"a..b":1}`,
		),
		unparsed("finds a document nested too deep", deep,
			"Limit of mapping depth [20] has been exceeded due to object field ["+deep+"]", "{}",
			strings.Repeat(`{"a":`, 30)+"1"+strings.Repeat("}", 30)),
		{Answer: taken, answer: each(0, 0, nil), resolve: anIndex, real: withIndex("{}")},
		unparsed(
			"finds arrays nested 2,000 deep",
			"",
			"Document nesting depth (1001) exceeds the maximum allowed (1000)",
			"{}",
			nested(2_000),
		),
		unparsed("finds a field twice", "", "[1:11] Duplicate field 'secret'", "{}", `{"a":1,"a":2}`),
		unparsed(
			"finds a number of 2,000 digits",
			"",
			"Number value length (2000) exceeds the maximum allowed (1000)",
			"{}",
			`{"a":`+strings.Repeat("1", 2_000)+"}",
		),
		unparsed("has an object where the document has a value", "title",
			"object mapping for [title] tried to parse field [title] as object, but found a concrete value",
			`{"mappings":{"properties":{"title":{"type":"object"}}}}`, ""),
		unparsed(
			"finds a word too long for a keyword",
			"tag",
			"failed to parse field [tag] of type [keyword] in document with "+
				"id 'secret'. Preview of field's value: 'secret'",
			`{"mappings":{"properties":{"tag":{"type":"keyword"}}}}`,
			`{"tag":"`+strings.Repeat("secret", 6_000)+`"}`,
		),
		unparsed(
			"finds a vector of another length",
			"v",
			"The [dense_vector] field [v] in doc [document with id 'secret'] has a "+
				"different number of dimensions [2] than defined in the mapping [3]",
			`{"mappings":{"properties":{"v":{"type":"dense_vector","dims":3}}}}`,
			`{"v":[1,2]}`,
		),
	}
}

// named adds the product header to every answer, as Elasticsearch does.
type named struct{ *http.Transport }

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := n.Transport.RoundTrip(r)
	if err == nil {
		answer.Header.Set("X-Elastic-Product", "Elasticsearch")
	}
	return answer, err
}

func elasticTable() []sinktest.Answer {
	var all []sinktest.Answer
	for _, r := range elasticRows() {
		r.Open = func(t *testing.T) sink.Sink {
			return startResolving(t, r.answer, r.resolve).sink(t, func(o *opensearch.Options) {
				o.Product, o.Transport = opensearch.Elasticsearch, named{exchange.NewTransport()}
			})
		}
		all = append(all, r.Answer)
	}
	return all
}

func TestAnswersOfElasticsearch(t *testing.T) {
	t.Parallel()
	for _, a := range elasticTable() {
		t.Run(a.Name(), func(t *testing.T) {
			t.Parallel()
			a.Check(t, a.Open(t))
		})
	}
}

// The documentation page of the kind contains the table that the test checks.
func TestTheElasticsearchPageIsUpToDate(t *testing.T) {
	t.Parallel()
	sinktest.Page(
		t,
		"testdata/elasticsearch.md",
		"go test ./sink/opensearch -run TestTheElasticsearchPage -rewrite",
		elasticTable(),
		*rewrite,
	)
}

// realRows returns the rows whose answers the real server can give.
func realRows() []row {
	all := rows()
	if product() == opensearch.Elasticsearch {
		other := elasticRows()
		all = slices.DeleteFunc(all, func(r row) bool {
			return strings.Contains(r.Says, "mapper_parsing_exception") ||
				strings.Contains(r.Says, "Limit of total fields") ||
				strings.Contains(r.Says, "immense term") ||
				r.resolve == aDataStream // the distribution for tests has no data streams
		})
		all = append(all, other...)
	}
	return slices.DeleteFunc(all, func(r row) bool { return r.real == nil })
}

func elasticOnly(t *testing.T) {
	t.Helper()
	if product() != opensearch.Elasticsearch {
		t.Skip("the server is not Elasticsearch")
	}
}

// Since 9.2, Elasticsearch stores vectors separately from documents, unless the index has another
// setting. lull's template has that setting. An index without this setting also returns vectors,
// but not digit for digit, so it has no generation.
func TestRealElasticsearchGivesVectorsBack(t *testing.T) {
	t.Parallel()
	server(t)
	elasticOnly(t)
	const mapping = `{"mappings":{"properties":{"v":{"type":"dense_vector","dims":3}}}}`
	const document = `{"title":"x","v":[1,2,3]}`
	for name, prepared := range map[string]bool{"with the template": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := real(t, nil)
			if !prepared {
				call(t, http.MethodDelete, s.URL+"/_index_template/"+s.Options.Template, "")
			}
			call(t, http.MethodPut, indexURL(s, "content"), mapping)
			write(t, s, sink.Applied, put("content#a", 1, document))
			got, found, err := s.Get(t.Context(), "content#a")
			if err != nil || !found {
				t.Fatalf("found %t, %v", found, err)
			}
			var vector struct {
				V []float64 `json:"v"`
			}
			if err := json.Unmarshal(got.Document, &vector); err != nil || !slices.Equal(vector.V, []float64{1, 2, 3}) {
				t.Errorf("got %s: %v", got.Document, err)
			}
			generation, err := s.Generation(t.Context(), "content")
			whole := string(got.Document) == document
			if err != nil || whole != (generation != "") || prepared && !whole {
				t.Errorf("generation %q of %s: %v", generation, got.Document, err)
			}
			if !prepared { // a new index must not lose the vectors
				call(t, http.MethodPut, s.URL+"/_index_template/"+s.Options.Template,
					fmt.Sprintf(`{"index_patterns":[%q]}`, strings.ReplaceAll(s.Index, "{collection}", "*")))
			}
			made := strings.ReplaceAll(s.Index, "{collection}", "content") + ".r20261122000000"
			from := strings.ReplaceAll(s.Index, "{collection}", "content")
			if err := s.Create(t.Context(), sink.NewIndex{Name: made, Like: from}); err != nil {
				t.Fatal(err)
			}
			outcomes, err := s.Transfer(t.Context(), "content", from, made, []string{"a"})
			if err != nil || outcomes[0].Kind != sink.Applied {
				t.Fatalf("transfer: %+v, %v", outcomes, err)
			}
			into, ok := s.Into("content", made).(*opensearch.Sink)
			if !ok {
				t.Fatal("the sink of a rebuild is of another type")
			}
			copies, err := into.Documents(t.Context(), []event.DocID{"content#a"})
			if err != nil || !strings.Contains(string(copies[0].Document), `"v":[1`) {
				t.Errorf("the copy is %s: %v", copies[0].Document, err)
			}
		})
	}
}

// A hostile document may be refused, but it must not affect other documents.
func TestRealServerTakesHostileDocumentsApart(t *testing.T) {
	t.Parallel()
	s := real(t, nil)
	fields := make(map[string]int)
	for i := range 10_000 {
		fields[fmt.Sprintf("f%d", i)] = i
	}
	many, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		name, document string
		want           sink.OutcomeKind
	}{
		{"first", `{"title":"fine"}`, sink.Applied},
		{"deep objects", strings.Repeat(`{"a":`, 5_000) + "1" + strings.Repeat("}", 5_000), sink.Rejected},
		{"10,000 fields", string(many), sink.Rejected},
		{"4 MB", `{"body":"` + strings.Repeat("word ", 800_000) + `"}`, sink.Applied},
		{"not UTF-8", "{\"title\":\"\xff\xfe\"}", sink.Rejected},
		{"a lone surrogate", `{"title":"\ud800"}`, sink.Applied},
		{"dots in names", `{"a.b.c":1,"a":{"b":{"d":2}}}`, sink.Applied},
		{"script tags", `{"title":"<script>alert(1)</script>\u0000"}`, sink.Applied},
		{"a member of the engine's", `{"_id":"x","_source":1}`, sink.Rejected},
		{"last", `{"title":"fine"}`, sink.Applied},
	} {
		got := s.Write(t.Context(), []sink.Op{
			put(
				fmt.Sprintf("content#%d", i),
				1,
				tt.document,
			), put(fmt.Sprintf("content#beside%d", i), 1, `{"title":"fine"}`),
		})
		if got[0].Kind != tt.want || got[1].Kind != sink.Applied {
			t.Errorf("%s: got %+v and beside it %+v, want %s and applied", tt.name, got[0], got[1], tt.want)
		}
	}
	long := strings.Repeat("é", 300) // 600 bytes: receive refuses it, and so does the engine
	got := s.Write(t.Context(), []sink.Op{put("content#"+long, 1, `{}`), put("content#short", 1, `{}`)})
	if got[0].Kind != sink.Rejected || got[1].Kind != sink.Applied {
		t.Errorf("a long id: got %+v", got)
	}
}

// An engine that does not know the setting for vectors gets the template without that setting. If
// the engine refuses the template for another reason, the error contains the engine's text.
func TestATemplateIsInstalledOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	const unknown = `{"error":{"type":"invalid_index_template_exception","reason":"unknown setting"},"status":400}`
	const taken = `{"error":{"type":"illegal_argument_exception","reason":"patterns of [other-template] match"},"status":400}`
	const same = `{"error":{"type":"illegal_argument_exception","reason":"index template [b] has index patterns [lull-*] ` +
		`matching patterns from existing templates [a] with patterns (a => [lull-*]) that have the same priority [50]"},"status":400}`
	for name, tt := range map[string]struct {
		product opensearch.Product
		answer  func(body string) string // empty is success
		asked   int
		says    string
	}{
		"9.2":        {opensearch.Elasticsearch, func(string) string { return "" }, 1, ""},
		"OpenSearch": {opensearch.OpenSearch, func(string) string { return "" }, 1, ""},
		"before 9.2": {opensearch.Elasticsearch, func(body string) string {
			if strings.Contains(body, "exclude_source_vectors") {
				return unknown
			}
			return ""
		}, 2, ""},
		"OpenSearch that refuses": {opensearch.OpenSearch, func(string) string { return unknown }, 1, "unknown setting"},
		"another template":        {opensearch.Elasticsearch, func(string) string { return taken }, 1, "patterns of [other-template] match"},
		"two others of lull's": {opensearch.OpenSearch, func(body string) string {
			if strings.Contains(body, `"priority":48,`) {
				return ""
			}
			return same
		}, 3, ""},
		"one at every priority": {opensearch.OpenSearch, func(string) string { return same }, 21, "existing templates [a]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t, func(w http.ResponseWriter, r request) {
				if answer := tt.answer(r.body); r.Method == http.MethodPut && answer != "" {
					respond(400, answer)(w, r)
					return
				}
				respond(200, `{"version":{"number":"1"}}`)(w, r)
			})
			s := e.sink(t, func(o *opensearch.Options) {
				o.Collections = []event.Collection{"content"}
				if o.Product = tt.product; o.Product == opensearch.Elasticsearch {
					o.Transport = named{exchange.NewTransport()}
				}
			})
			err := s.Prepare(t.Context())
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
			const before = 3 // requests before the template is sent: the greeting, and two for the existing templates
			e.got(t, tt.asked+before)
			inside := strings.Contains(e.seen()[before].body, "exclude_source_vectors")
			if inside != (tt.product == opensearch.Elasticsearch) {
				t.Errorf("the template is %s", e.seen()[before].body)
			}
		})
	}
}
