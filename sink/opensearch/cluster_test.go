// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
)

// cluster is an engine in memory. A cluster has the parts of indices, aliases and templates that
// lull uses.
type cluster struct {
	sync.Mutex

	indices   map[string]*index
	aliases   map[string]string // by name: the one index of the alias
	templates map[string]template
	legacy    map[string]template
}

type index struct {
	Mapping map[string]any
	docs    map[string]json.RawMessage
	blocked bool
}

type template struct {
	Patterns []string `json:"index_patterns"`
	Priority int      `json:"priority"`
	Meta     any      `json:"_meta,omitempty"`
	Template struct {
		Mappings map[string]any `json:"mappings,omitempty"`
	} `json:"template"`
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.Lock()
	defer c.Unlock()
	body, _ := io.ReadAll(r.Body)
	part := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	status, answer := 200, any(map[string]any{"acknowledged": true})
	switch last := part[len(part)-1]; {
	case r.URL.Path == "/":
		answer = map[string]any{"version": map[string]any{"number": "2.19.3"}}
	case part[0] == "_template" && r.Method == http.MethodPut:
		c.legacy[last] = decoded[template](body)
	case part[0] == "_template":
		answer = c.legacy
	case part[0] == "_index_template" && r.Method == http.MethodPut:
		c.templates[last] = decoded[template](body)
	case part[0] == "_index_template" && len(part) == 1:
		all := []any{}
		for _, name := range slices.Sorted(maps.Keys(c.templates)) {
			all = append(all, map[string]any{"name": name, "index_template": c.templates[name]})
		}
		answer = map[string]any{"index_templates": all}
	case part[0] == "_resolve":
		answer = c.resolve(last)
	case last == "_bulk":
		answer = c.bulk(string(body))
	case last == "_mget":
		answer = c.mget(body)
	case r.URL.Path == "/_search/scroll":
		answer = map[string]any{"hits": map[string]any{"hits": []any{}}}
	case last == "_search":
		status, answer = c.search(part[0], string(body))
	case last == "_field_caps":
		answer = map[string]any{"fields": map[string]any{"title": map[string]any{"text": map[string]any{"searchable": true}}}}
	case last == "_settings" && r.Method == http.MethodPut:
		c.indices[part[0]].blocked = true
	case len(part) == 1 && r.Method == http.MethodPut:
		c.create(last, body)
	case len(part) == 1 && r.Method == http.MethodDelete:
		delete(c.indices, last)
	case len(part) == 1:
		i := c.indices[cmp.Or(c.aliases[last], last)]
		if status = 404; i != nil {
			status, answer = 200, map[string]any{last: map[string]any{
				"mappings": i.Mapping, "settings": map[string]any{"index": map[string]any{"uuid": last}},
			}}
		}
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func decoded[T any](text []byte) (v T) {
	_ = json.Unmarshal(text, &v)
	return v
}

// create makes an index with the settings of the matching template that has the greatest priority.
func (c *cluster) create(name string, body []byte) {
	made := decoded[struct {
		Mappings map[string]any
		Aliases  map[string]any
	}](body)
	best := template{Priority: -1}
	for _, t := range c.templates {
		fits := func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }
		if t.Priority > best.Priority && slices.ContainsFunc(t.Patterns, fits) {
			best = t
		}
	}
	i := &index{Mapping: map[string]any{}, docs: map[string]json.RawMessage{}}
	maps.Copy(i.Mapping, best.Template.Mappings)
	maps.Copy(i.Mapping, made.Mappings)
	c.indices[name] = i
	for alias := range made.Aliases {
		c.aliases[alias] = name
	}
}

func (c *cluster) resolve(names string) any {
	indices, aliases := []any{}, []any{}
	for _, pattern := range strings.Split(names, ",") {
		for name := range c.indices {
			if ok, _ := path.Match(pattern, name); ok {
				indices = append(indices, map[string]any{"name": name, "attributes": []string{"open"}})
			}
		}
		for name, of := range c.aliases {
			if ok, _ := path.Match(pattern, name); ok {
				aliases = append(aliases, map[string]any{"name": name, "indices": []string{of}})
			}
		}
	}
	return map[string]any{"indices": indices, "aliases": aliases}
}

func (c *cluster) bulk(body string) any {
	items := []any{}
	lines := strings.Split(strings.TrimSpace(body), "\n")
	for n := 0; n < len(lines); n++ {
		for verb, a := range decoded[map[string]struct {
			Index string `json:"_index"`
			ID    string `json:"_id"`
		}]([]byte(lines[n])) {
			lands := cmp.Or(c.aliases[a.Index], a.Index)
			if c.indices[lands] == nil {
				c.create(lands, nil)
			}
			i, status := c.indices[lands], 200
			item := map[string]any{"_index": lands, "_id": a.ID, "result": "deleted"}
			if i.blocked {
				status = 403
				item["error"] = map[string]any{"type": "cluster_block_exception", "reason": "index [" + lands + "] blocked"}
			}
			if verb == "index" {
				n++
			}
			switch {
			case i.blocked:
			case verb == "index":
				i.docs[a.ID] = json.RawMessage(lines[n])
			default:
				delete(i.docs, a.ID)
			}
			item["status"] = status
			items = append(items, map[string]any{verb: item})
		}
	}
	return map[string]any{"items": items}
}

func (c *cluster) mget(body []byte) any {
	docs := []any{}
	for _, d := range decoded[struct {
		Docs []struct {
			Index string `json:"_index"`
			ID    string `json:"_id"`
		}
	}](body).Docs {
		of := map[string]any{"_id": d.ID, "found": false}
		if i := c.indices[cmp.Or(c.aliases[d.Index], d.Index)]; i != nil && i.docs[d.ID] != nil {
			of["found"], of["_source"] = true, i.docs[d.ID]
		}
		docs = append(docs, of)
	}
	return map[string]any{"docs": docs}
}

// search finds all documents, or only lull's if the query asks for a fence. If an index has no
// mapping, sorting fails unless the request names the type of the field.
func (c *cluster) search(names, body string) (int, any) {
	hits := []any{}
	for _, name := range strings.Split(names, ",") {
		name = cmp.Or(c.aliases[name], name)
		i := c.indices[name]
		if i == nil {
			continue
		}
		if len(i.Mapping) == 0 && strings.Contains(body, `"sort":[{"_id"`) && !strings.Contains(body, "unmapped_type") {
			return 400, map[string]any{"error": map[string]any{"type": "search_phase_execution_exception"}}
		}
		for _, id := range slices.Sorted(maps.Keys(i.docs)) {
			if !strings.Contains(body, "_lull.fence") || strings.Contains(string(i.docs[id]), `"_lull"`) {
				hits = append(hits, map[string]any{"_index": name, "_id": id, "_source": i.docs[id], "sort": []string{id}})
			}
		}
	}
	return 200, map[string]any{"hits": map[string]any{"hits": hits}}
}
