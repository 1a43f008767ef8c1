// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lullhq/lull/internal/config/tree"
	"github.com/lullhq/lull/setting"
)

var (
	sinkType   = reflect.TypeFor[Sink]()
	sourceType = reflect.TypeFor[Source]()
)

// Decode turns a settings file into settings. A setting that the file lacks has its default. A
// mapping of sources, collections or sinks replaces the whole default mapping. Unknown and repeated
// keys, values of a wrong kind and values out of bounds are faults with their line. If there is
// such a fault, Decode also reports contradictions between settings, so that one run shows all
// faults. Otherwise Decode does not look for contradictions, because flags may still change the
// settings. Call Validate afterwards.
func Decode(root tree.Node) (Config, error) { return DecodeAs(root, KindsLinked) }

// DecodeAs is Decode for settings that may name kinds which this program does not link. Call
// ValidateAs afterwards.
func DecodeAs(root tree.Node, kinds Kinds) (Config, error) {
	return decode(root, decoder{kinds: kinds})
}

func decode(root tree.Node, d decoder) (Config, error) {
	c := Default()
	// The default names belong to the default maps, which the file may replace. Complete fills in
	// empty names again.
	c.DefaultSource, c.DefaultCollection, c.DefaultSink = "", "", ""
	// These three settings follow from others that the file may change. Complete computes them.
	c.Debounce.MaxWait, c.Queues.ExpectedRate, c.Queues.Elsewhere = derived, 0, ""
	d.value(root, reflect.ValueOf(&c).Elem(), at{})
	c.Complete()
	switch {
	case len(d.list) == 0:
		return c, nil
	case d.full():
		return Config{}, d.err()
	}
	// A second fault about the same setting would only confuse, so only the first is reported.
	for _, f := range c.faults(d.kinds) {
		if !d.mentions(f.Setting) {
			d.add(f)
		}
	}
	return Config{}, d.err()
}

// at is a place in the settings: the name to print, and the generic name to look up.
type at struct{ name, generic string }

func (p at) key(key string) at {
	if p.name == "" {
		return at{key, key}
	}
	return at{p.name + "." + key, p.generic + "." + key}
}

// entry is the place of an element in a mapping whose keys the operator chooses.
func (p at) entry(name string) at { return at{p.name + "." + printable(name), p.generic + ".<name>"} }

func (p at) index(i int) at { return at{fmt.Sprintf("%s[%d]", p.name, i), p.generic + "[]"} }

func (p at) String() string {
	if p.name == "" {
		return "the file"
	}
	return p.name
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// printable returns a key in a form that is safe to print. A key with unusual characters is quoted
// and shortened.
func printable(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return shorten(strconv.Quote(key))
}

// longestValue is how many bytes of a value a fault shows.
const longestValue = 80

func shorten(s string) string {
	if len(s) <= longestValue {
		return s
	}
	return strings.ToValidUTF8(s[:longestValue], "") + "..."
}

type decoder struct {
	faults

	kinds Kinds
}

// wrong adds a fault about the form of the file.
func (d *decoder) wrong(n tree.Node, p at, problem, fix string) {
	value := shorten(redact(n.Text))
	if n.Kind == tree.String && value == "" {
		value = `""`
	}
	d.add(&Fault{Rule: "form", Setting: p.String(), Value: value, Problem: problem, Fix: fix, Line: n.Line})
}

// value decodes n into v, which is settable and holds the default.
func (d *decoder) value(n tree.Node, v reflect.Value, p at) {
	q, isQuantity := quantities[v.Type()]
	switch {
	case isQuantity:
		d.quantity(q, n, v, p)
	case v.Kind() == reflect.Pointer:
		elem := reflect.New(v.Type().Elem())
		d.value(n, elem.Elem(), p)
		v.Set(elem)
	case v.Kind() == reflect.Struct:
		d.fields(n, v, p)
	case v.Kind() == reflect.Map:
		d.entries(n, v, p)
	case v.Kind() == reflect.Slice:
		d.items(n, v, p)
	default:
		d.scalar(n, v, p)
	}
}

// group reports whether n is allowed where a mapping is expected. An empty value is allowed, and
// sets nothing.
func (d *decoder) group(n tree.Node, p at) bool {
	if n.Kind != tree.Map && n.Kind != tree.Null {
		d.wrong(n, p, "is "+n.Kind.String()+" where a group of settings is expected",
			"write its settings below it, each as name: value")
		return false
	}
	return true
}

// fields decodes a mapping whose keys are settings.
func (d *decoder) fields(n tree.Node, v reflect.Value, p at) {
	if !d.group(n, p) {
		return
	}
	seen := make(map[string]bool, len(n.Fields))
	// The kind decides which other keys are allowed. So the kind is found before any key is
	// decoded.
	own := ownOptions(n, v.Type())
	for _, f := range n.Fields {
		if d.full() {
			break
		}
		i, ok := fieldNamed(v.Type(), f.Key)
		name := p.key(printable(f.Key)).name
		option, isOption := own.field(f.Key)
		switch {
		case seen[f.Key]:
			d.add(&Fault{
				Rule: "repeated", Setting: name, Problem: "is set twice", Fix: "keep one of the two",
				Line: f.Line,
			})
		case isOption:
			inside := at{p.name, optionsOf(p.generic, own.kind)}
			d.value(f.Value, option, inside.key(f.Key))
		case !ok && own.unlinked && (d.kinds == KindsAny || own.kind != ""):
			// This is an option of a kind that the program does not link. Unless the program is a
			// function, Validate refuses the kind.
		case !ok:
			d.add(own.unknown(name, p, f))
		default:
			d.value(f.Value, v.Field(i), p.key(f.Key))
		}
		seen[f.Key] = true
	}
	if own.value.IsValid() {
		v.FieldByName("Options").Set(own.value)
	}
}

// options are the options of one kind, while the settings of a sink or source are decoded.
type options struct {
	of   reflect.Type // the type of the settings that all kinds have
	kind string
	// value is a copy of the kind's options with their defaults. It is not valid if the kind is
	// unknown or has no options, or if the settings are neither a sink nor a source.
	value    reflect.Value
	unlinked bool // the kind is not registered in this program
}

// ownOptions finds the kind that a mapping names.
func ownOptions(n tree.Node, t reflect.Type) options {
	own := options{of: t}
	r, ok := registries[t]
	if !ok {
		return own
	}
	for _, f := range n.Fields {
		if f.Key == "kind" {
			own.kind = f.Value.Text
		}
	}
	k, ok := r.lookup(own.kind)
	own.unlinked = !ok
	if k.Options != nil {
		own.value = reflect.New(reflect.TypeOf(k.Options)).Elem()
		// A copy, so that decoding does not change the registered defaults.
		own.value.Set(reflect.ValueOf(k.Options))
	}
	return own
}

// field returns the option of that name, or false.
func (o options) field(key string) (reflect.Value, bool) {
	if !o.value.IsValid() {
		return reflect.Value{}, false
	}
	i, ok := fieldNamed(o.value.Type(), key)
	if !ok {
		return reflect.Value{}, false
	}
	return o.value.Field(i), true
}

// unknown returns the fault about a key that is not a setting in this group.
func (o options) unknown(name string, p at, f tree.Field) *Fault {
	fault := &Fault{Rule: "unknown", Setting: name, Problem: "is not a setting", Line: f.Line}
	names := fieldNames(o.of)
	if o.value.IsValid() {
		names = append(names, fieldNames(o.value.Type())...)
	}
	if r, ok := registries[o.of]; ok {
		if others := r.withOption(f.Key); len(others) > 0 {
			kinds := strings.Join(others, " or ")
			fault.Problem = "is an option of the kind " + kinds + ", but the " + r.noun + "'s kind is " + printable(o.kind)
			fault.Fix = "remove it, or set " + p.key("kind").name + " to " + kinds
			return fault
		}
	}
	fault.Fix = instead(names, p, f.Key)
	return fault
}

// entries decodes a mapping whose keys are names. It replaces the default mapping.
func (d *decoder) entries(n tree.Node, v reflect.Value, p at) {
	if !d.group(n, p) || n.Kind == tree.Null {
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.Fields)))
	for _, f := range n.Fields {
		if d.full() {
			return
		}
		key := reflect.ValueOf(f.Key)
		if v.MapIndex(key).IsValid() {
			d.add(&Fault{
				Rule: "repeated", Setting: p.entry(f.Key).name, Problem: "is set twice",
				Fix: "keep one of the two", Line: f.Line,
			})
			continue
		}
		elem := reflect.New(v.Type().Elem()).Elem()
		d.value(f.Value, elem, p.entry(f.Key))
		v.SetMapIndex(key, elem)
	}
}

// items decodes a list. It replaces the default list as a whole.
func (d *decoder) items(n tree.Node, v reflect.Value, p at) {
	if n.Kind == tree.Null {
		return
	}
	if n.Kind != tree.List {
		d.wrong(n, p, "is "+n.Kind.String()+" where a list is expected", "write a list such as [a, b]")
		return
	}
	items := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		element := p.index(i)
		if v.Type().Elem().Kind() == reflect.String {
			element.generic = p.generic // a list of texts is one setting
		}
		d.value(item, items.Index(i), element)
	}
	v.Set(items)
}

// inline is the tag of a field whose own fields are listed next to it: the options of a kind.
const inline = "-"

// fieldNamed finds the field of a struct that a key names.
func fieldNamed(t reflect.Type, key string) (int, bool) {
	i := slices.Index(fieldNames(t), key)
	return i, i >= 0
}

// fieldNames returns the names of a struct's settings, in the order of its fields. The field with
// the options of a kind has no name, and is the last field.
func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("json"); name != inline {
			names = append(names, name)
		}
	}
	return names
}

// instead suggests what to write instead of an unknown key. It names a similar key of the group, a
// setting of that name in another group, or all allowed keys.
func instead(names []string, p at, key string) string {
	if near := setting.Nearest(key, names); near != "" {
		return fmt.Sprintf("did you mean %s?", p.key(near).name)
	}
	if found := elsewhere(p, key); found != "" {
		return fmt.Sprintf("did you mean %s?", found)
	}
	slices.Sort(names)
	return "remove it; allowed here are: " + strings.Join(names, ", ")
}

// elsewhere returns a setting of that name in another group, or "". A setting that exists only once
// is preferred to a setting of a source, collection or sink.
func elsewhere(p at, key string) string {
	found := ""
	for _, s := range settings() {
		group, last := "", s.Name
		if i := strings.LastIndex(s.Name, "."); i >= 0 {
			group, last = s.Name[:i], s.Name[i+1:]
		}
		if group == p.generic || !strings.EqualFold(last, key) {
			continue
		}
		if !strings.Contains(s.Name, "<name>") {
			return s.Name
		}
		if found == "" {
			found = s.Name
		}
	}
	return found
}
