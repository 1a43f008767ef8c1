// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
)

// walk calls visit for every setting of v that has a value, in the order of lull.yaml. Maps are
// sorted by name, lists of texts are visited element by element, and unset overrides are skipped.
func walk(v reflect.Value, p at, visit func(p at, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), p, visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Tag.Get("json")
			if name != inline {
				walk(v.Field(i), p.key(name), visit)
			} else if options := v.Field(i).Elem(); options.IsValid() {
				walk(options, at{p.name, optionsOf(p.generic, v.FieldByName("Kind").String())}, visit)
			}
		}
	case reflect.Map:
		for _, name := range sortedNames(v) {
			walk(v.MapIndex(reflect.ValueOf(name)), p.entry(name), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			element := p.index(i)
			if v.Type().Elem().Kind() == reflect.String {
				element.generic = p.generic
			}
			walk(v.Index(i), element, visit)
		}
	default:
		visit(p, v)
	}
}

// sortedNames returns the keys of a map, in order.
func sortedNames(v reflect.Value) []string {
	names := make([]string, 0, v.Len())
	for _, key := range v.MapKeys() {
		names = append(names, key.String())
	}
	slices.Sort(names)
	return names
}

// judge checks one value against the bounds of its setting. It returns nil if the value is within
// the bounds.
func judge(p at, v reflect.Value, kinds Kinds) *Fault {
	s := byName()[p.generic]
	r, isKind := kindOf(p.generic)
	if isKind && kinds.pass(r, v.String()) {
		return nil
	}
	var problem, fix string
	switch v.Kind() {
	case reflect.String:
		problem, fix = s.CheckText(v.String())
		if problem != "" && v.String() != "" && isKind {
			fix += ", or import the package of a kind of your own into this program"
			if instead := source.Carries(v.String()); instead != "" && r.noun == "source" {
				fix = instead + ". " + strings.ToUpper(fix[:1]) + fix[1:]
			}
		}
	case reflect.Int, reflect.Int64:
		problem, fix = s.CheckNumber(v.Int())
	case reflect.Uint32:
		problem, fix = s.CheckNumber(int64(v.Uint()))
	}
	if problem == "" {
		return nil
	}
	return &Fault{Rule: "bounds", Setting: p.name, Value: written(v), Problem: problem, Fix: fix}
}

// kindOf returns the registry of the kinds that a setting may name. It returns false if the setting
// does not name a kind.
func kindOf(generic string) (registry, bool) {
	for _, r := range registries {
		if generic == r.group+".kind" {
			return r, true
		}
	}
	return registry{}, false
}

// quantity is how lull.yaml writes values of one type.
type quantity struct {
	is, fix string // texts of a fault: what the value should be, and how to write it
	parse   func(text string) (int64, error)
	format  func(n int64) string
}

var quantities = map[reflect.Type]quantity{
	reflect.TypeFor[time.Duration](): quantityOf("a duration", "write a number with a unit, such as 5s or 7d",
		setting.ParseDuration, setting.FormatDuration),
	reflect.TypeFor[setting.Size](): quantityOf("a size", "write a number with a unit, such as 256KB",
		setting.ParseSize, setting.Size.String),
	reflect.TypeFor[setting.Rate](): quantityOf("a rate", "write a number a second, such as 20 or 0.5",
		setting.ParseRate, setting.Rate.String),
}

func quantityOf[N ~int64](is, fix string, parse func(string) (N, error), format func(N) string) quantity {
	return quantity{
		is: is, fix: fix, format: func(n int64) string { return format(N(n)) },
		parse: func(text string) (int64, error) {
			n, err := parse(text)
			return int64(n), err
		},
	}
}

// written returns a value as lull.yaml writes it, shortened and without passwords.
func written(v reflect.Value) string {
	if q, ok := quantities[v.Type()]; ok {
		return q.format(v.Int())
	}
	switch v.Kind() {
	case reflect.String:
		if v.String() == "" {
			return `""`
		}
		return shorten(redact(v.String()))
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Uint32:
		return strconv.FormatUint(v.Uint(), 10)
	default:
		return strconv.FormatInt(v.Int(), 10)
	}
}

// redact hides everything before the last @. A URL has its user and password before the @, and
// faults are logged.
func redact(s string) string {
	end := strings.LastIndex(s, "@")
	if end < 0 {
		return s
	}
	scheme := ""
	if i := strings.Index(s, "://"); i >= 0 && i < end {
		scheme = s[:i+len("://")]
	}
	return scheme + "***" + s[end:]
}
