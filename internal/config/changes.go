// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"reflect"
	"slices"
)

// Change is one setting whose values differ between two configurations.
type Change struct {
	// Name is the dotted name as in lull.yaml, such as collections.news.quiet.
	Name string
	// Generic is Name as Settings lists it, such as collections.<name>.quiet.
	Generic string
	// Old and New are the values as lull.yaml writes them, shortened and without passwords. A value
	// is empty if its configuration does not have the setting.
	Old, New string

	old, new reflect.Value
}

// Lowered reports whether the new number, duration or size is smaller than the old one.
func (c Change) Lowered() bool { return c.compare() < 0 }

// Raised reports whether the new number, duration or size is greater than the old one.
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

// Changes lists the settings whose values differ between two complete configurations, by name. If
// only one configuration has an entry of sources, collections or sinks, all settings of that entry
// are listed.
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
