package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// walk calls visit for every setting of v that has a value, in the order of lull.yaml: maps by
// name, lists of texts element by element, overrides only where they are set.
func walk(v reflect.Value, p at, visit func(p at, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), p, visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			walk(v.Field(i), p.key(v.Type().Field(i).Tag.Get("json")), visit)
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

// judge holds one value to its setting's bounds. Nil means that they hold.
func judge(s Setting, name string, v reflect.Value) *Fault {
	var problem, fix string
	switch v.Kind() {
	case reflect.String:
		problem, fix = s.text(v.String())
	case reflect.Int, reflect.Int64:
		problem, fix = s.number(v.Int())
	case reflect.Uint32:
		problem, fix = s.number(int64(v.Uint()))
	}
	if problem == "" {
		return nil
	}
	return &Fault{Rule: "bounds", Setting: name, Value: written(v), Problem: problem, Fix: fix}
}

// written returns a value as lull.yaml writes it, cut and without passwords.
func written(v reflect.Value) string {
	switch {
	case v.Type() == durationType:
		return FormatDuration(time.Duration(v.Int()))
	case v.Type() == sizeType:
		return Size(v.Int()).String()
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

// redact hides what stands before the last @, where a URL has its user and password: faults are
// logged.
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
