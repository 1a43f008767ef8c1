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

// judge holds one value to its setting's bounds. Nil means that they hold. Where the settings are
// deployed, any kind will do: not every function has them all.
func judge(p at, v reflect.Value, deployed bool) *Fault {
	s := byName()[p.generic]
	if deployed && isKind(p.generic) {
		return nil
	}
	var problem, fix string
	switch v.Kind() {
	case reflect.String:
		problem, fix = s.CheckText(v.String())
		if problem != "" && v.String() != "" && isKind(p.generic) {
			fix += ", or import the package of a kind of your own into this program"
			ofSource := strings.HasPrefix(p.generic, registries[sourceType].group)
			if instead := source.Carries(v.String()); instead != "" && ofSource {
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

// isKind reports whether a setting names a registered kind.
func isKind(generic string) bool {
	group, isKind := strings.CutSuffix(generic, ".kind")
	return isKind && (group == registries[sinkType].group || group == registries[sourceType].group)
}

// quantity returns a duration, a size or a rate as lull.yaml writes it, and false for every other
// value.
func quantity(v reflect.Value) (string, bool) {
	switch v.Type() {
	case durationType:
		return setting.FormatDuration(time.Duration(v.Int())), true
	case sizeType:
		return setting.Size(v.Int()).String(), true
	case rateType:
		return setting.Rate(v.Int()).String(), true
	}
	return "", false
}

// written returns a value as lull.yaml writes it, cut and without passwords.
func written(v reflect.Value) string {
	if text, ok := quantity(v); ok {
		return text
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
