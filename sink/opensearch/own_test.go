// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
	"github.com/lullhq/lull/sink/opensearch"
	"github.com/lullhq/lull/sink/sinktest"
)

// ground is an engine, in memory or real, with a sink. The index of the collection "content" has
// the prefix in its name, and ends with -content.
type ground struct {
	*opensearch.Sink
	*testing.T

	prefix string
}

func (g *ground) ask(method, path, body string) map[string]any {
	g.Helper()
	return call(g.T, method, g.URL+"/"+path, body)
}

// opening is the type of the field Open of sinktest.Owned.
type opening = func(*testing.T) (sink.Sink, func(*testing.T) string)

// at creates the user's data with requests, in which K is replaced by the prefix. The second result
// describes the user's data, and a new index that the user creates.
func at(product opensearch.Product, url string, requests ...string) opening {
	return func(t *testing.T) (sink.Sink, func(*testing.T) string) {
		t.Helper()
		at, transport := url, http.RoundTripper(nil)
		if url == "" {
			c := &cluster{
				indices: map[string]*index{}, aliases: map[string]string{}, templates: map[string]template{},
				legacy: map[string]template{},
			}
			server := httptest.NewServer(c)
			t.Cleanup(server.Close)
			at = server.URL
			if product == opensearch.Elasticsearch {
				transport = named{exchange.NewTransport()}
			}
		}
		prefix := "k" + strings.ToLower(rand.Text()[:8])
		s := newSink(t, opensearch.Options{
			URL: at, Index: prefix + "-{collection}", Versions: true, Template: prefix + "-lull", Product: product,
			Collections: []event.Collection{"content"}, Transport: transport,
		})
		g := &ground{Sink: s, T: t, prefix: prefix}
		for _, request := range requests {
			part := strings.SplitN(strings.ReplaceAll(request, "K", prefix), " ", 3)
			g.ask(part[0], part[1], part[2])
		}
		if url != "" {
			t.Cleanup(func() {
				g.ask(http.MethodDelete, prefix+"*?expand_wildcards=all", "")
				call(t, http.MethodPut, at+"/_index_template/"+prefix+"-lull", `{"index_patterns":["`+prefix+`"]}`) // one to delete
				call(t, http.MethodDelete, at+"/_index_template/"+prefix+"*", "")
				call(t, http.MethodPut, at+"/_template/"+prefix+"-old", `{"index_patterns":["`+prefix+`"]}`)
				call(t, http.MethodDelete, at+"/_template/"+prefix+"*", "")
			})
		}
		return s, g.theirs
	}
}

// theirs describes the user's document, the aliases and the user's templates. The method also
// describes the mapping of new indices whose names are similar to lull's.
func (g *ground) theirs(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	mine := g.ask(http.MethodPost, "_mget", fmt.Sprintf(`{"docs":[{"_index":"%s-content","_id":"mine"}]}`, g.prefix))
	first, _ := mine["docs"].([]any)[0].(map[string]any)
	fmt.Fprintln(&b, "document", first["_source"])
	fmt.Fprintln(&b, "aliases", g.ask(http.MethodGet, "_resolve/index/"+g.prefix+"*", "")["aliases"])
	all, _ := g.ask(http.MethodGet, "_index_template", "")["index_templates"].([]any)
	for _, each := range all {
		t, _ := each.(map[string]any)
		if name, _ := t["name"].(string); strings.HasPrefix(name, g.prefix) && name != g.prefix+"-lull" {
			fmt.Fprintln(&b, "template", name, t["index_template"])
		}
	}
	for _, like := range []string{"-other", "-content.r2"} {
		name := g.prefix + like
		g.ask(http.MethodPut, name, "{}")
		made, _ := g.ask(http.MethodGet, name, "")[name].(map[string]any)
		fmt.Fprintln(&b, "a new index", like, made["mappings"])
		g.ask(http.MethodDelete, name, "")
	}
	return b.String()
}

// owned returns the table for [sinktest.Own]. The table is the same for the kinds opensearch and
// elasticsearch.
func owned(product opensearch.Product, url string) map[sinktest.Place]sinktest.Owned {
	on := func(requests ...string) opening {
		return at(product, url, requests...)
	}
	const theirs = `_index_template/K-theirs {"index_patterns":["K-*"],"priority":10,` +
		`"template":{"mappings":{"properties":{"title":{"type":"keyword"}}}}}`
	return map[sinktest.Place]sinktest.Owned{
		sinktest.Empty:    {Open: on(`PUT K-content {"mappings":{"properties":{"title":{"type":"text"}}}}`)},
		sinktest.Unmapped: {Open: on(`PUT K-content {}`)},
		sinktest.Aliased: {Open: on(
			`PUT K-blue {"aliases":{"K-content":{}},"mappings":{"properties":{"title":{"type":"text"}}}}`,
			`POST _bulk?refresh=true {"index":{"_index":"K-content","_id":"mine"}}`+"\n"+`{"title":"mine"}`+"\n",
		)},
		sinktest.Templated: {Open: on("PUT " + theirs), Prepare: `-theirs" also matches k`},
		sinktest.Beside:    {Open: on(`PUT K-theirs {}`)},
		sinktest.ReadOnly: {
			Open: on(`PUT K-content {"mappings":{"properties":{"title":{"type":"text"}}}}`,
				`PUT K-content/_settings {"index.blocks.write":true}`),
			Put: sink.Configuration,
		},
	}
}

func TestTheUsersOwnStays(t *testing.T) {
	t.Parallel()
	sinktest.Own(t, "opensearch", owned(opensearch.OpenSearch, ""))
	sinktest.Own(t, "elasticsearch", owned(opensearch.Elasticsearch, ""))
}

func TestTheUsersOwnStaysOnARealServer(t *testing.T) {
	t.Parallel()
	url := server(t)
	sinktest.Own(t, strings.ToLower(product().String()), owned(product(), url))
}

// Prepare fails if lull's template would replace a template of the user for an index that lull is
// asked to prepare.
func TestATemplateTakesNoIndexFromAnother(t *testing.T) {
	t.Parallel()
	url := "" // in memory
	if os.Getenv(openSearchVariable) != "" {
		url = server(t)
	}
	const mapping = `"template":{"mappings":{"properties":{"title":{"type":"keyword"}}}}}`
	for name, c := range map[string]struct{ request, fails string }{
		"a greater priority wins anyway": {`PUT _index_template/K-theirs {"index_patterns":["K-*"],"priority":51,` + mapping, ""},
		"for other names":                {`PUT _index_template/K-theirs {"index_patterns":["K-*s","*-K"],"priority":1,` + mapping, ""},
		"the same priority": {`PUT _index_template/K-theirs {"index_patterns":["K-con*t"],"priority":50,` +
			mapping, "-theirs\" also matches"},
		"a legacy one":                    {`PUT _template/K-old {"index_patterns":["K-*"]}`, "-old\" also matches"},
		"a template with lull's own name": {`PUT _index_template/K-lull {"index_patterns":["x-K"],"priority":1,` + mapping, "is not lull's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, theirs := at(opensearch.OpenSearch, url, c.request)(t)
			was := theirs(t)
			p, _ := s.(sink.Preparer)
			err := p.Prepare(t.Context())
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("prepare: got %v, want %q", err, c.fails)
			}
			if is := theirs(t); is != was {
				t.Errorf("was %s\nis  %s", was, is)
			}
		})
	}
}

// The template keeps the names of earlier calls of Prepare, because a later command may name fewer
// collections.
func TestATemplateKeepsTheNamesThatItHas(t *testing.T) {
	t.Parallel()
	s, _ := at(opensearch.OpenSearch, "")(t)
	first, _ := s.(*opensearch.Sink)
	o := first.Options
	o.Collections = []event.Collection{"news"}
	for _, each := range []*opensearch.Sink{first, newSink(t, o)} {
		if err := each.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	text, _ := json.Marshal(call(t, http.MethodGet, first.URL+"/_index_template", ""))
	for _, c := range []string{"content", "news"} {
		if want := `"` + strings.ReplaceAll(o.Index, "{collection}", c) + `"`; !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
}

// lull's template does not match the names of indices that a rebuild creates, and the operator's
// mapping may have no rules for new fields. If the old index has lull's rules for new fields, the
// new index gets the current ones.
func TestANewIndexMapsNewFieldsAsTheTemplateDoes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ was, mapping, want string }{
		"lull's rules, an older version": {`{"dynamic_templates":[{"whole_numbers":{"mapping":{"type":"double"}}}]}`, `{}`, `"ignore_above":256`},
		"rules of the mapping's own":     {`{"dynamic_templates":[{"whole_numbers":{}}]}`, `{"dynamic_templates":[]}`, `"dynamic_templates":[]`},
		"the user's rules":               {`{"dynamic_templates":[{"mine":{}}]}`, `{"dynamic":"strict"}`, `{"dynamic":"strict"}`},
		"no mapping given":               {`{"dynamic_templates":[{"whole_numbers":{"old":1}}]}`, ``, `{"whole_numbers":{"old":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := at(opensearch.OpenSearch, "", `PUT K-content {"mappings":`+c.was+`}`)(t)
			engine, _ := s.(*opensearch.Sink)
			old := strings.ReplaceAll(engine.Index, "{collection}", "content")
			n := sink.NewIndex{Collection: "content", Name: old + ".r20261122100000", Like: old}
			if c.mapping != "" {
				n.Mapping = []byte(c.mapping)
			}
			if err := engine.Create(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			made, _ := call(t, http.MethodGet, engine.URL+"/"+n.Name, "")[n.Name].(map[string]any)
			mapping, _ := made["mappings"].(map[string]any)
			delete(mapping, "properties")
			if got, _ := json.Marshal(mapping); !strings.Contains(string(got), c.want) {
				t.Errorf("the new index maps %s, want %s", got, c.want)
			}
		})
	}
}
