// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// object is a JSON object of a schema.
type object = map[string]any

// Schema returns the JSON Schema, draft 2020-12, of lull.yaml with the kinds that are registered in
// this program. It uses the same descriptions of settings as docs/settings.md and the decoder.
//
// The decoder or Validate refuses every file that the schema refuses. The opposite does not hold: a
// schema knows no units and no contradictions between settings.
func Schema() []byte {
	root := schemaWriter{plainDefaults()}.value(reflect.TypeFor[Config](), at{})
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "lull.yaml"
	root["description"] = "The settings of lull. `lull config check` also finds contradictions between settings, which " +
		"a schema cannot."
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // cannot happen: texts, numbers and lists can always be encoded in JSON
	}
	return append(text, '\n')
}

// exemplar holds one element of every map and list, so that each setting has a default to print.
func exemplar() Config {
	c := Default()
	c.Sources = map[string]Source{"x": {Match: []source.Match{{}}, Fetch: &source.Fetch{}}}
	c.Collections = map[string]Collection{"x": {Enrich: newEnrich(), Verify: newVerify()}}
	c.Sinks = map[string]Sink{"x": newSink("")}
	return c
}

// plainDefaults returns the default of each setting that follows from no other setting, by generic
// name.
func plainDefaults() map[string]reflect.Value {
	defaults := make(map[string]reflect.Value)
	note := func(p at, v reflect.Value) { defaults[p.generic] = v }
	walk(reflect.ValueOf(exemplar()), at{}, note)
	for _, r := range registries {
		for _, k := range r.kinds() {
			if k.Options != nil {
				walk(reflect.ValueOf(k.Options), at{generic: optionsOf(r.group, k.Name), name: "x"}, note)
			}
		}
	}
	return defaults
}

// schemaWriter makes the schema of a type. It visits the fields in the same way as the decoder.
type schemaWriter struct{ defaults map[string]reflect.Value }

func (w schemaWriter) value(t reflect.Type, p at) object {
	switch {
	case t.Kind() == reflect.Pointer:
		return w.value(t.Elem(), p)
	case t.Kind() == reflect.Struct:
		return w.fields(t, p)
	case t.Kind() == reflect.Map:
		names := namePattern
		if p.generic == "collections" {
			names = collectionPattern
		}
		return object{
			"propertyNames":        object{"pattern": names.String()},
			"type":                 []string{"object", "null"},
			"additionalProperties": w.value(t.Elem(), p.entry("name")),
		}
	case t.Kind() == reflect.Slice:
		element := p.index(0)
		list := object{"type": []string{"array", "null"}}
		if t.Elem().Kind() == reflect.String {
			element.generic = p.generic // a list of texts is one setting
			list["description"] = describe(byName()[p.generic])
			list["items"] = text(byName()[p.generic])
			return list
		}
		list["items"] = w.value(t.Elem(), element)
		return list
	default:
		return w.leaf(p)
	}
}

// fields is the schema of a group of settings. The options of a kind are next to the settings that
// all kinds have. The schema lists the options of every kind, and for a given kind it refuses the
// options of other kinds.
func (w schemaWriter) fields(t reflect.Type, p at) object {
	properties, required := w.properties(t, p), []string{}
	for _, name := range fieldNames(t) {
		if byName()[p.key(name).generic].Default == "required" {
			required = append(required, name)
		}
	}
	group := object{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		group["required"], group["type"] = required, "object"
	}
	if r, ok := registries[t]; ok {
		group["allOf"] = w.kinds(r, p, properties)
	}
	return group
}

// properties are the settings of a group.
func (w schemaWriter) properties(t reflect.Type, p at) object {
	properties := object{}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("json"); name != inline {
			properties[name] = w.value(t.Field(i).Type, p.key(name))
		}
	}
	return properties
}

// kinds returns a schema for each kind that lists the kind's options. It adds the options of all
// kinds to the properties.
func (w schemaWriter) kinds(r registry, p at, properties object) []object {
	own := make(map[string]object) // by kind
	for _, k := range r.kinds() {
		own[k.Name] = object{}
		if k.Options != nil {
			own[k.Name] = w.properties(reflect.TypeOf(k.Options), at{p.name, optionsOf(p.generic, k.Name)})
		}
		for name := range own[k.Name] {
			properties[name] = true
		}
	}
	var all []object
	for _, k := range r.kinds() {
		options := maps.Clone(own[k.Name])
		for _, others := range own {
			for name := range others {
				if _, has := options[name]; !has {
					options[name] = false
				}
			}
		}
		then := object{"description": k.Doc, "properties": options}
		if s, isSink := sink.Lookup(k.Name); isSink && r.noun == "sink" {
			then["required"] = needed(s)
		}
		all = append(all, object{
			"if":   object{"properties": object{"kind": object{"const": k.Name}}, "required": []string{"kind"}},
			"then": then,
		})
	}
	return all
}

// needed lists the settings that a kind of sink requires.
func needed(k sink.Kind) []string {
	names := []string{}
	if k.NeedsIndex {
		names = append(names, "index")
	}
	if k.Deployable() {
		names = append(names, "url")
	}
	return names
}

// Patterns for the spelling of quantities. A pattern cannot express the bounds of a quantity, so
// the description names the bounds.
const (
	durationSpelling = `^ *\+?([0-9]+d)?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))* *$`
	sizeSpelling     = `^ *[0-9]+ *(B|KB|MB|GB)? *$`
	rateSpelling     = `^ *[0-9]+(_[0-9]{3})*(\.[0-9]{1,3})? *$`
	groupedSpelling  = `^[0-9]{1,3}(_[0-9]{3})+$` // lull reads 80_000 as a number, YAML 1.2 as a text
)

// leaf is the schema of one setting.
func (w schemaWriter) leaf(p at) object {
	s := byName()[p.generic]
	var schema object
	switch s.Unit {
	case setting.UnitDuration:
		schema = object{"type": "string", "pattern": durationSpelling}
	case setting.UnitSize:
		schema = object{"type": []string{"string", "integer"}, "pattern": sizeSpelling, "minimum": s.Min, "maximum": s.Max}
	case setting.UnitCount:
		schema = object{"type": []string{"integer", "string"}, "pattern": groupedSpelling, "minimum": s.Min, "maximum": s.Max}
	case setting.UnitRate:
		schema = object{
			"type": []string{"number", "string"}, "pattern": rateSpelling,
			"minimum": float64(s.Min) / float64(setting.OncePerSecond), "maximum": s.Max / int64(setting.OncePerSecond),
		}
	case setting.UnitFlag:
		schema = object{"type": "boolean"}
	case setting.UnitChoice:
		schema = object{"enum": s.Choices}
	case setting.UnitText, setting.UnitList:
		schema = text(s)
	}
	schema["description"] = describe(s)
	if v, ok := w.defaults[p.generic]; ok && s.Default == "" {
		schema["default"] = asJSON(v)
	}
	return schema
}

func text(s setting.Setting) object {
	schema := object{"type": "string"}
	if s.Pattern != nil {
		schema["pattern"] = s.Pattern.String()
	}
	return schema
}

// describe returns the text that an editor shows about a setting.
func describe(s setting.Setting) string {
	var b strings.Builder
	b.WriteString(s.Doc)
	if s.Unit != setting.UnitFlag && (s.Unit != setting.UnitText && s.Unit != setting.UnitList || s.Shape != "") {
		b.WriteString(" " + strings.ToUpper(string(s.Unit[:1])) + string(s.Unit[1:]) + ": " + s.Bounds() + ".")
	}
	if s.Default != "" {
		b.WriteString(" Default: " + s.Default + ".")
	}
	return b.String()
}
