// SPDX-License-Identifier: Apache-2.0

package typesense_test

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/typesense"
)

// names is a fake Typesense that has only the names of collections, and the collection of each
// alias. As in Typesense, a collection wins over an alias with the same name.
type names struct {
	sync.Mutex

	collections []string
	aliases     map[string]string
	denied      bool   // the key must not read aliases
	readOnly    bool   // the key must not write
	written, in string // the id of the last written document, and its collection
	had         bool   // a user created the collection content
}

func (n *names) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.Lock()
	defer n.Unlock()
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	answer := func(found bool, body string) {
		if found {
			says(http.StatusOK, body)(w, r)
		} else {
			says(http.StatusNotFound, noIndex)(w, r)
		}
	}
	exists := func(name string) bool {
		return slices.Contains(n.collections, name) || slices.Contains(n.collections, n.aliases[name])
	}
	switch {
	case r.URL.Path == "/health":
		says(http.StatusOK, `{"ok":true}`)(w, r)
	case r.URL.Path == "/collections" && r.Method == http.MethodGet:
		list := []map[string]string{}
		for _, name := range n.collections {
			list = append(list, map[string]string{"name": name})
		}
		_ = json.NewEncoder(w).Encode(list)
	case r.URL.Path == "/aliases":
		list := []map[string]string{}
		for name, of := range n.aliases {
			list = append(list, map[string]string{"name": name, "collection_name": of})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"aliases": list})
	case strings.HasSuffix(r.URL.Path, "/export") && exists(parts[1]):
		if n.is(parts[1]) == n.in {
			says(http.StatusOK, n.written)(w, r)
		}
	case r.Method != http.MethodGet && n.readOnly:
		says(http.StatusUnauthorized, `{"message":"Forbidden"}`)(w, r)
	case len(parts) == 4 && r.Method == http.MethodGet: // a document
		n.document(w, r, parts[1])
	case len(parts) == 4 && r.Method == http.MethodDelete:
		n.written = ""
		answer(exists(parts[1]), `{}`)
	case strings.HasSuffix(r.URL.Path, "/import") && exists(parts[1]):
		body, _ := io.ReadAll(r.Body)
		n.written, n.in = string(body), n.is(parts[1])
		says(http.StatusOK, success)(w, r)
	case r.Method == http.MethodPost && r.URL.Path == "/collections":
		var made struct{ Name string }
		_ = json.NewDecoder(r.Body).Decode(&made)
		n.collections = append(n.collections, made.Name)
		says(http.StatusCreated, `{}`)(w, r)
	case parts[0] == "aliases" && n.denied:
		says(http.StatusUnauthorized, `{"message":"Forbidden"}`)(w, r)
	case parts[0] == "aliases":
		_, ok := n.aliases[parts[1]]
		answer(ok, `{}`)
	case len(parts) == 2:
		answer(exists(parts[1]), `{}`)
	default:
		answer(exists(parts[1]), success)
	}
}

// is returns the collection that an alias names, or the name itself if it is not an alias.
func (n *names) is(name string) string { return cmp.Or(n.aliases[name], name) }

// document answers a request for a document with the last written document.
func (n *names) document(w http.ResponseWriter, r *http.Request, of string) {
	if n.written == "" || n.is(of) != n.in {
		says(http.StatusNotFound, noIndex)(w, r)
		return
	}
	says(http.StatusOK, n.written)(w, r)
}

func (n *names) sink(t *testing.T) *typesense.Sink {
	t.Helper()
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	s, err := typesense.New(typesense.Options{URL: server.URL, Collections: []event.Collection{"content"}, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestPrepareMakesNoCollectionThatHidesAnAlias(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		there *names
		want  []string
		fails string
	}{
		{"nothing is there", &names{}, []string{"content"}, ""},
		{"the collection is there", &names{collections: []string{"content"}}, []string{"content"}, ""},
		{
			"an alias has the name",
			&names{collections: []string{"blue"}, aliases: map[string]string{"content": "blue"}},
			[]string{"blue"},
			"",
		},
		{"an alias points to nothing", &names{aliases: map[string]string{"content": "gone"}}, nil, "an alias has this name"},
		{"aliases may not be read", &names{denied: true}, []string{"content"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := c.there.sink(t).Prepare(t.Context())
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("Prepare: %v, want %q", err, c.fails)
			}
			if got := c.there.collections; !slices.Equal(got, c.want) {
				t.Errorf("collections %q, want %q", got, c.want)
			}
		})
	}
}

func TestAWriteMakesNoCollectionThatHidesAnAlias(t *testing.T) {
	t.Parallel()
	n := names{aliases: map[string]string{"content": "gone"}}
	op := sink.Op{Doc: "content#a", Kind: event.Put, Fence: 1, Document: []byte(`{}`)}
	got := n.sink(t).Write(t.Context(), []sink.Op{op})[0]
	if got.Kind != sink.Configuration || len(n.collections) != 0 {
		t.Errorf("outcome %+v, collections %q: want a fault of configuration, and no collection", got, n.collections)
	}
}

func TestARealAliasKeepsWhatItPointsTo(t *testing.T) {
	t.Parallel()
	s := real(t, func(o *typesense.Options) { o.Collections = []event.Collection{"content"} })
	address := os.Getenv(serverVariable)
	alias := strings.ReplaceAll(s.Index, "{collection}", "content")
	call(t, http.MethodPost, address+"/collections",
		`{"name":"`+alias+`-blue","fields":[{"name":"title","type":"string"}]}`, nil)
	call(t, http.MethodPut, address+"/aliases/"+alias, `{"collection_name":"`+alias+`-blue"}`, nil)
	t.Cleanup(func() { call(t, http.MethodDelete, address+"/aliases/"+alias, "", nil) })
	call(t, http.MethodPost, address+"/collections/"+alias+"/documents", `{"id":"mine","title":"mine"}`, nil)
	if err := s.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	var found struct{ Found int }
	call(t, http.MethodGet, address+"/collections/"+alias+"/documents/search?q=mine&query_by=title", "", &found)
	if found.Found != 1 {
		t.Errorf("a search by the alias finds %d documents, want the user's own one", found.Found)
	}
}
