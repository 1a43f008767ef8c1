// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"reflect"
	"strings"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// registry is the list of the registered kinds of sinks or sources. In lull.yaml, the options of a
// kind are next to the settings that all kinds have.
type registry struct {
	group  string // the generic name of one element
	noun   string
	lookup func(kind string) (setting.Kind, bool)
	names  func() []string
}

// registries holds the registry of each type with a field Kind and a field Options.
var registries = map[reflect.Type]registry{
	sinkType: {
		group: "sinks.<name>", noun: "sink", names: sink.Kinds,
		lookup: func(kind string) (setting.Kind, bool) {
			k, ok := sink.Lookup(kind)
			return k.Kind, ok
		},
	},
	sourceType: {
		group: "sources.<name>", noun: "source", names: source.Kinds,
		lookup: func(kind string) (setting.Kind, bool) {
			k, ok := source.Lookup(kind)
			return k.Kind, ok
		},
	},
}

// Kinds says which kinds of sinks and sources the settings may name. The options of a kind that
// this program does not link are not checked.
type Kinds int

const (
	// KindsLinked are the kinds that this program links.
	KindsLinked Kinds = iota
	// KindsAlsoOthers are all kinds, except a name that looks like a misspelt linked kind.
	KindsAlsoOthers
	// KindsAny are all kinds. Deployed settings need it: the program that deployed them knew the
	// kinds.
	KindsAny
)

// pass reports whether an unlinked kind of that name is allowed.
func (k Kinds) pass(r registry, kind string) bool {
	switch k {
	case KindsAny:
		return true
	case KindsAlsoOthers:
		return kind != "" && setting.Nearest(kind, r.names()) == "" && source.Carries(kind) == ""
	default:
		return false
	}
}

// Unlinked is a sink or source of a kind that this program does not link.
type Unlinked struct {
	// Setting is the name of its group in lull.yaml, such as sinks.lake.
	Setting string `json:"setting"`
	Kind    string `json:"kind"`
}

// Unlinked returns the sinks and sources that could not be checked, because this program does not
// link their kind. Not checked are their options, and the rules that need the kind's capabilities.
func (c *Config) Unlinked() (all []Unlinked) {
	for _, s := range c.namedSinks() {
		if !s.linked {
			all = append(all, Unlinked{s.path, printable(s.Kind)})
		}
	}
	for _, s := range c.namedSources() {
		if !s.linked {
			all = append(all, Unlinked{s.path, printable(s.Kind)})
		}
	}
	return all
}

// capable returns the settings with every unlinked kind assumed to have all capabilities. A rule
// that these settings break is broken for every possible kind.
func (c *Config) capable() *Config {
	able := *c
	able.Sinks = maps.Clone(c.Sinks)
	for _, s := range c.namedSinks() {
		if !s.linked && s.Versions == nil {
			s.Versions = new(true)
			able.Sinks[s.name] = s.Sink
		}
	}
	return &able
}

// kinds returns the descriptions of all kinds, by name.
func (r registry) kinds() []setting.Kind {
	var all []setting.Kind
	for _, name := range r.names() {
		k, _ := r.lookup(name)
		all = append(all, k)
	}
	return all
}

// withOption returns the names of the kinds that have an option, or a group of options, with the
// name key.
func (r registry) withOption(key string) []string {
	var names []string
	for _, k := range r.kinds() {
		if k.Options == nil {
			continue
		}
		if _, ok := fieldNamed(reflect.TypeOf(k.Options), key); ok {
			names = append(names, k.Name)
		}
	}
	return names
}

// optionsOf is the generic name of the group of a kind's options.
func optionsOf(generic, kind string) string { return generic + ":" + kind }

// settings describes the options of every kind of a registry, under their generic names.
func (r registry) settings() []described {
	var all []described
	for _, k := range r.kinds() {
		for _, s := range k.Settings {
			d := described{Setting: s, generic: optionsOf(r.group, k.Name) + "." + s.Name}
			d.Name = r.group + "." + s.Name
			all = append(all, d)
		}
	}
	return all
}

// checkOptions refuses options that belong to another kind; only code can set such options. Options
// of the right kind are checked by the kind itself.
func checkOptions[S any](f *checker, path string, s S, options any, k setting.Kind, check func(S) []setting.Problem) {
	switch {
	case options != nil && reflect.TypeOf(options) != reflect.TypeOf(k.Options):
		f.fault(path, nil, "has options of another kind than its kind "+k.Name,
			"set Options to the type that the kind's package defines")
	case check != nil:
		for _, p := range check(s) {
			f.fault(path+"."+p.Setting, p.Value, p.Problem, p.Fix)
		}
	}
}

// deployable names the kinds of sinks that can be deployed.
func deployable() string {
	var names []string
	for _, name := range sink.Kinds() {
		if k, _ := sink.Lookup(name); k.Deployable() {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
