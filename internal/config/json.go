// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/lullhq/lull/internal/config/tree"
)

// MarshalJSON writes every setting, with durations and sizes as lull.yaml writes them. Overrides
// that are not set, nil lists and the options of other kinds are left out.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(asJSON(reflect.ValueOf(c))) }

// UnmarshalJSON reads settings as ParseJSON does. A setting that the text lacks has its default,
// and not the value that c had before.
func (c *Config) UnmarshalJSON(text []byte) error {
	parsed, err := ParseJSON(text)
	if err == nil {
		*c = parsed
	}
	return err
}

// ParseJSON reads settings in JSON, strictly; see Decode. Call Validate afterwards.
func ParseJSON(text []byte) (Config, error) { return parseJSON(text, decoder{}) }

func parseJSON(text []byte, d decoder) (Config, error) {
	root, err := tree.ParseJSON(text)
	if err != nil {
		return Config{}, fmt.Errorf("parse settings: %w", err)
	}
	return decode(root, d)
}

// LoadDeployed calls ParseDeployed for the file that is deployed with a function's binary. Its
// errors name the file.
func LoadDeployed(path string) (Config, error) {
	text, err := tree.ReadFile(path)
	if err != nil {
		return Config{}, err
	}
	c, err := ParseDeployed(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return c, err
}

// ParseDeployed reads settings that were validated when the stack was synthesized, and validates
// them again. A function links only the kinds that it needs. So ParseDeployed accepts any name of a
// kind, and does not check the options of other kinds.
func ParseDeployed(text []byte) (Config, error) {
	c, err := parseJSON(text, decoder{kinds: KindsAny})
	if err == nil {
		err = c.validateDeployed(KindsAny)
	}
	return c, err
}

// asJSON returns a value as encoding/json writes it: durations and sizes as texts, structs as maps.
func asJSON(v reflect.Value) any {
	if q, ok := quantities[v.Type()]; ok {
		return q.format(v.Int())
	}
	switch v.Kind() {
	case reflect.Pointer:
		return asJSON(v.Elem())
	case reflect.Struct:
		fields := make(map[string]any)
		fieldsAsJSON(v, fields)
		return fields
	case reflect.Map:
		entries := make(map[string]any, v.Len())
		for _, name := range v.MapKeys() {
			entries[name.String()] = asJSON(v.MapIndex(name))
		}
		return entries
	case reflect.Slice:
		items := make([]any, v.Len())
		for i := range items {
			items[i] = asJSON(v.Index(i))
		}
		return items
	default:
		return v.Interface()
	}
}

// fieldsAsJSON writes a kind's options next to the settings that all kinds have, as lull.yaml does.
func fieldsAsJSON(v reflect.Value, into map[string]any) {
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Tag.Get("json"), v.Field(i)
		switch {
		case leftOut(v.Type(), field):
		case name == inline:
			fieldsAsJSON(field.Elem(), into)
		default:
			into[name] = asJSON(field)
		}
	}
}

// leftOut reports whether the JSON leaves out a field of the struct t. It leaves out an override
// that is not set, a nil list or map, and options that a source does not have. A group whose
// settings are all zero is not left out, because it replaces the defaults.
func leftOut(t reflect.Type, v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return v.IsNil()
	case reflect.Struct:
		return t == sourceType && v.IsZero()
	default:
		return false
	}
}
