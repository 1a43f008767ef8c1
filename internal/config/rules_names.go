// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/lullhq/lull/setting"
)

// nameRules check names and references to names.
var nameRules = []Rule{
	{
		"names", "The names of sources, collections and sinks fit into resource names, keys and indices.",
		checkNames,
	},
	{"some", "There is at least one source and one sink.", checkSome},
	{"default", "If there are several sources or sinks, one is the default, and the default exists.", checkDefaults},
	{"reference", "A sink or source that a setting names exists.", checkReferences},
	{
		"sinks", "A collection names each of its sinks once, and no two of its sinks have the same address and " +
			"index.",
		checkSinks,
	},
	{
		"sinks-match", "If rules bind a source to the queue of one sink of a collection, they bind it to the " +
			"queues of all its sinks.", checkSinksMatch,
	},
	{
		"existing", "An existing queue serves one sink, and its name does not end in -bulk or -dead.",
		checkExisting,
	},
	{
		"collection-reference", "If collections are configured, a collection that a setting names is one of them.",
		checkCollectionReferences,
	},
}

func checkNames(c *Config, f *checker) {
	checkKeys(f, "sources", c.Sources, namePattern, nameShape)
	checkKeys(f, "collections", c.Collections, collectionPattern, collectionShape)
	checkKeys(f, "sinks", c.Sinks, namePattern, nameShape)
}

// checkKeys checks the names in sorted order, so that equal settings give faults in the same order.
func checkKeys[V any](f *checker, group string, m map[string]V, pattern *regexp.Regexp, shape string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !pattern.MatchString(name) {
			f.fault(group+"."+printable(name), nil, "the name is not allowed", "use "+shape)
		}
	}
}

func checkSome(c *Config, f *checker) {
	if len(c.Sources) == 0 {
		f.fault("sources", nil, "there is no source, so no message could be decoded",
			"add one, such as native with kind: native, or remove sources")
	}
	if len(c.Sinks) == 0 {
		f.fault("sinks", nil, "there is no sink, so no document could be written",
			"add one, such as search with kind: bleve, or remove sinks")
	}
}

func checkDefaults(c *Config, f *checker) {
	checkDefault(f, "defaultSource", "sources", c.DefaultSource, c.Sources)
	checkDefault(f, "defaultSink", "sinks", c.DefaultSink, c.Sinks)
}

func checkDefault[V any](f *checker, setting, group, name string, m map[string]V) {
	names := slices.Sorted(maps.Keys(m))
	_, exists := m[name]
	switch {
	// The rule "some" already reports an empty group.
	case len(m) == 0 || exists:
	case name == "":
		f.fault(setting, nil, fmt.Sprintf("is missing, and there are %d %s", len(m), group),
			"set it to one of "+strings.Join(names, ", "))
	default:
		f.fault(setting, name, "is not one of "+group, oneOf(name, names))
	}
}

// oneOf suggests what to write instead of a name that does not exist.
func oneOf(name string, names []string) string {
	if near := setting.Nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "set it to one of " + strings.Join(names, ", ")
}

func checkReferences(c *Config, f *checker) {
	f.references(c, "sinks", slices.Sorted(maps.Keys(c.Sinks)), "is not the name of a sink", "")
	f.references(c, "sources", slices.Sorted(maps.Keys(c.Sources)), "is not the name of a source", "")
}

func checkCollectionReferences(c *Config, f *checker) {
	if len(c.Collections) > 0 {
		f.references(c, "collections", slices.Sorted(maps.Keys(c.Collections)),
			"is not the name of a collection, so each such event would be refused", ", or add it to collections")
	}
}

// references maps the generic name of each setting that names an entry of a group to that group.
var references = map[string]string{
	"collections.<name>.sink":     "sinks",
	"collections.<name>.sinks":    "sinks",
	"sources.<name>.match[].sink": "sinks",
	"payload.allow[].sources":     "sources",
	"defaultCollection":           "collections",
	"sources.<name>.collection":   "collections",
	"sources.<name>.collections":  "collections",
}

// references checks every setting that names an entry of a group. The entries of the group have
// these names.
func (f *checker) references(c *Config, group string, names []string, problem, or string) {
	walk(reflect.ValueOf(*c), at{}, func(p at, v reflect.Value) {
		if references[p.generic] == group && v.String() != "" && !slices.Contains(names, v.String()) {
			f.fault(p.name, v.String(), problem, oneOf(v.String(), names)+or)
		}
	})
}

// checkSinks checks the list of sinks of each collection, except whether the sinks exist. Two sinks
// with the same address and index would overwrite each other's documents, because their fences are
// independent.
func checkSinks(c *Config, f *checker) {
	for _, name := range slices.Sorted(maps.Keys(c.Collections)) {
		o, path := c.Collections[name], "collections."+printable(name)+".sinks"
		if o.Sink != "" && len(o.Sinks) > 0 {
			f.fault(path, strings.Join(o.Sinks, ", "), "cannot be used together with sink",
				"keep one of the two: in sinks, the first one "+
					"keeps the rows that "+printable(o.Sink)+" has alone")
		}
		if o.Sinks != nil && len(o.Sinks) == 0 {
			f.fault(path, nil, "names no sink, so that its documents would go to "+c.SinksFor(name)[0],
				"remove sinks, or name one")
		}
		for i, sink := range o.Sinks {
			at := fmt.Sprintf("%s[%d]", path, i)
			if slices.Contains(o.Sinks[:i], sink) {
				f.fault(at, sink, "is named twice", "name each sink once")
				continue
			}
			for _, other := range o.Sinks[:i] {
				a, b := c.Sinks[sink], c.Sinks[other]
				if a.URL != "" && a.URL == b.URL && strings.ReplaceAll(a.Index, "{collection}", name) ==
					strings.ReplaceAll(b.Index, "{collection}", name) {
					f.fault(at, sink, "is the same address and index as "+other+": each would overwrite the other's documents",
						"give sinks."+sink+" another index")
				}
			}
		}
	}
}

// checkSinksMatch checks the sources whose messages are recognised by the queue that they are in.
func checkSinksMatch(c *Config, f *checker) {
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		s := c.Sources[name]
		bound := map[string]bool{}
		for _, m := range s.Match {
			bound[m.Sink] = m.Sink != ""
		}
		reaches := append([]string{c.CollectionFor(name)}, s.Collections...)
		slices.Sort(reaches)
		for _, collection := range slices.Compact(reaches) {
			sinks := c.SinksFor(collection)
			if !slices.ContainsFunc(sinks, func(sink string) bool { return bound[sink] }) {
				continue
			}
			for _, sink := range sinks {
				if !bound[sink] {
					f.fault("sources."+printable(name)+".match", nil, "does not name the queue of sink "+sink+", which gets the "+
						"events of collection "+printable(collection)+" too", "add {sink: "+sink+"}")
				}
			}
		}
	}
}

// checkExisting checks queues that exist already. The function dlq recognises the bulk lane by the
// end of a queue's name. Each function takes messages only from its own queues.
func checkExisting(c *Config, f *checker) {
	owner, sinks := make(map[string]string), slices.Sorted(maps.Keys(c.Sinks))
	for _, name := range sinks {
		if c.Sinks[name].LiveQueue == "" {
			owner[c.Stack+"-"+name+"-live"] = name
		}
	}
	for _, name := range sinks {
		queue, setting := c.Sinks[name].LiveQueue, "sinks."+printable(name)+".liveQueue"
		if queue == "" {
			continue
		}
		if strings.HasSuffix(queue, "-bulk") || strings.HasSuffix(queue, "-dead") {
			f.fault(setting, queue, "has a name like the queues of the other lanes",
				"name a queue that does not end in -bulk or -dead")
		}
		if other, taken := owner[queue]; taken {
			f.fault(setting, queue, "is also the live queue of sink "+other, "give each sink its own queue")
		}
		owner[queue] = name
	}
}
