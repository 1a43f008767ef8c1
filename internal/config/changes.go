package config

import (
	"cmp"
	"reflect"
	"slices"
)

// Change is one setting that two configurations do not agree on.
type Change struct {
	// Name is the dotted name as in lull.yaml, such as collections.news.quiet.
	Name string
	// Generic is Name as Settings lists it, such as collections.<name>.quiet.
	Generic string
	// Old and New are the values as lull.yaml writes them, cut and without passwords. Empty where
	// that configuration does not have the setting.
	Old, New string

	old, new reflect.Value
}

// Lowered reports whether a number, a duration or a size is smaller than it was.
func (c Change) Lowered() bool { return c.compare() < 0 }

// Raised reports whether a number, a duration or a size is greater than it was.
func (c Change) Raised() bool { return c.compare() > 0 }

func (c Change) compare() int {
	switch {
	case !c.old.IsValid() || !c.new.IsValid():
		return 0
	case c.old.CanInt():
		return cmp.Compare(c.new.Int(), c.old.Int())
	case c.old.CanUint():
		return cmp.Compare(c.new.Uint(), c.old.Uint())
	}
	return 0
}

// Changes lists the settings that two complete configurations do not agree on, by name. An entry of
// sources, collections or sinks that only one of them has is all of its settings.
func Changes(older, newer *Config) []Change {
	all := make(map[string]Change)
	walk(reflect.ValueOf(*older), at{}, func(p at, v reflect.Value) {
		all[p.name] = Change{Name: p.name, Generic: p.generic, Old: written(v), old: v}
	})
	walk(reflect.ValueOf(*newer), at{}, func(p at, v reflect.Value) {
		c := all[p.name]
		c.Name, c.Generic, c.New, c.new = p.name, p.generic, written(v), v
		all[p.name] = c
	})
	var changes []Change
	for _, c := range all {
		if !c.old.IsValid() || !c.new.IsValid() || !c.old.Equal(c.new) {
			c.Generic = cmp.Or(byName()[c.Generic].Name, c.Generic)
			changes = append(changes, c)
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Name, b.Name) })
	return changes
}
