// SPDX-License-Identifier: Apache-2.0

package typesense_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/sinktest"
	"github.com/lullhq/lull/sink/typesense"
)

// listed describes the collections and aliases of a fake that lull did not create.
func (n *names) listed(*testing.T) string {
	n.Lock()
	defer n.Unlock()
	lulls := func(name string) bool { return name == "content" && !n.had }
	theirs := slices.DeleteFunc(slices.Clone(n.collections), lulls)
	return fmt.Sprint(theirs, n.aliases)
}

// theirs returns a sink for the fake, and a function that describes the user's data in it.
func (n *names) theirs(t *testing.T) (sink.Sink, func(*testing.T) string) {
	t.Helper()
	n.had = slices.Contains(n.collections, "content")
	return n.sink(t), n.listed
}

const (
	noMapping  = "a collection has its schema from the beginning"
	noTemplate = "Typesense has no templates"
)

func TestTheUsersOwnStays(t *testing.T) {
	t.Parallel()
	sinktest.Own(t, "typesense", map[sinktest.Place]sinktest.Owned{
		sinktest.Empty:     {Open: (&names{collections: []string{"content"}}).theirs},
		sinktest.Unmapped:  {None: noMapping},
		sinktest.Aliased:   {Open: (&names{collections: []string{"blue"}, aliases: map[string]string{"content": "blue"}}).theirs},
		sinktest.Templated: {None: noTemplate},
		sinktest.Beside: {
			Open: (&names{collections: []string{"contents"}, aliases: map[string]string{"c": "x"}}).theirs,
		},
		sinktest.ReadOnly: {
			Open: (&names{collections: []string{"content"}, readOnly: true}).theirs, Put: sink.Configuration,
		},
	})
}

// mine creates the user's data on a real server. K in a request is replaced by the prefix of the
// sink's collections.
func mine(requests ...string) func(*testing.T) (sink.Sink, func(*testing.T) string) {
	return func(t *testing.T) (sink.Sink, func(*testing.T) string) {
		t.Helper()
		s := real(t, func(o *typesense.Options) { o.Collections = []event.Collection{"content"} })
		address, prefix := os.Getenv(serverVariable), strings.TrimSuffix(s.Index, "{collection}")
		for _, request := range requests {
			part := strings.SplitN(strings.ReplaceAll(request, "K", prefix), " ", 3)
			call(t, part[0], address+"/"+part[1], part[2], nil)
			if strings.HasPrefix(part[1], "aliases/") {
				t.Cleanup(func() { call(t, http.MethodDelete, address+"/"+part[1], "", nil) })
			}
		}
		return s, func(t *testing.T) string {
			t.Helper()
			var all []struct {
				Name   string
				Fields json.RawMessage
			}
			var aliases struct {
				Aliases []struct {
					Name string
					Of   string `json:"collection_name"`
				}
			}
			call(t, http.MethodGet, address+"/collections", "", &all)
			call(t, http.MethodGet, address+"/aliases", "", &aliases)
			var b strings.Builder
			for _, c := range all {
				if strings.HasPrefix(c.Name, prefix) && !strings.Contains(string(c.Fields), `"_lull`) {
					fmt.Fprintf(&b, "%s %s\n", c.Name, c.Fields)
				}
			}
			for _, a := range aliases.Aliases {
				if strings.HasPrefix(a.Name, prefix) {
					fmt.Fprintln(&b, a)
				}
			}
			return b.String()
		}
	}
}

func TestTheUsersOwnStaysOnARealServer(t *testing.T) {
	t.Parallel()
	if os.Getenv(serverVariable) == "" {
		t.Skipf("%s is not set: no Typesense to test against", serverVariable)
	}
	const fields = `"fields":[{"name":"title","type":"string","optional":true}]}`
	sinktest.Own(t, "typesense", map[sinktest.Place]sinktest.Owned{
		sinktest.Empty:     {Open: mine(`POST collections {"name":"Kcontent",` + fields)},
		sinktest.Unmapped:  {None: noMapping},
		sinktest.Templated: {None: noTemplate},
		sinktest.Aliased: {Open: mine(`POST collections {"name":"Kblue",`+fields,
			`PUT aliases/Kcontent {"collection_name":"Kblue"}`, `POST collections/Kblue/documents {"id":"mine","title":"mine"}`)},
		sinktest.Beside:   {Open: mine(`POST collections {"name":"Kcontents",` + fields)},
		sinktest.ReadOnly: {None: "a key decides it, which the test without a server has"},
	})
}
