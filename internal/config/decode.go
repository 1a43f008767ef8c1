package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/config/tree"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	sizeType     = reflect.TypeFor[Size]()
	sinkType     = reflect.TypeFor[Sink]()
	sourceType   = reflect.TypeFor[Source]()
)

// Decode turns a settings file into settings: the defaults, replaced by what the file says. A
// mapping of sources, collections or sinks replaces the default one whole. Unknown and repeated
// keys, values of a wrong kind and values out of bounds are faults with their line. Where there is
// one, the file's contradictions are reported with it, so that everything is said at once; a file
// that decodes is not checked for contradictions, because flags may still change it: call Validate
// afterwards.
func Decode(root tree.Node) (Config, error) {
	c := Default()
	c.DefaultSource, c.DefaultCollection, c.DefaultSink = "", "", ""
	var d decoder
	d.value(root, reflect.ValueOf(&c).Elem(), at{})
	c.Complete()
	if err := d.err(); err == nil {
		return c, nil
	}
	for _, f := range c.faults() {
		if !d.mentions(f.Setting) {
			d.add(f)
		}
	}
	return Config{}, d.err()
}

// at is where in the settings the decoder is: the name to print and the name to look up.
type at struct{ name, generic string }

func (p at) key(key string) at {
	if p.name == "" {
		return at{key, key}
	}
	return at{p.name + "." + key, p.generic + "." + key}
}

// entry is an element of a mapping with names of the operator's choice.
func (p at) entry(name string) at { return at{p.name + "." + printable(name), p.generic + ".<name>"} }

func (p at) index(i int) at { return at{fmt.Sprintf("%s[%d]", p.name, i), p.generic + "[]"} }

func (p at) String() string {
	if p.name == "" {
		return "the file"
	}
	return p.name
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// printable returns a key as it may be printed: quoted where it holds anything unusual, and cut.
func printable(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return shorten(strconv.Quote(key))
}

// longestValue is how much of a value a fault repeats.
const longestValue = 80

func shorten(s string) string {
	if len(s) <= longestValue {
		return s
	}
	return strings.ToValidUTF8(s[:longestValue], "") + "..."
}

type decoder struct{ faults }

// wrong adds a fault of the file's form.
func (d *decoder) wrong(n tree.Node, p at, problem, fix string) {
	value := shorten(redact(n.Text))
	if n.Kind == tree.String && value == "" {
		value = `""`
	}
	d.add(&Fault{Rule: "form", Setting: p.String(), Value: value, Problem: problem, Fix: fix, Line: n.Line})
}

// value decodes n into v, which is settable and holds the default.
func (d *decoder) value(n tree.Node, v reflect.Value, p at) {
	switch {
	case v.Type() == durationType, v.Type() == sizeType:
		d.quantity(n, v, p)
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

// group reports whether n may stand where a mapping is expected: nothing at all means that nothing
// is set there.
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
	for _, f := range n.Fields {
		i, ok := fieldNamed(v.Type(), f.Key)
		name := p.key(printable(f.Key)).name
		switch {
		case seen[f.Key]:
			d.add(&Fault{
				Rule: "repeated", Setting: name, Problem: "is set twice", Fix: "keep one of the two",
				Line: f.Line,
			})
		case !ok:
			d.add(&Fault{
				Rule: "unknown", Setting: name, Problem: "there is no such setting",
				Fix: instead(v.Type(), p, f.Key), Line: f.Line,
			})
		default:
			d.value(f.Value, v.Field(i), p.key(f.Key))
		}
		seen[f.Key] = true
	}
}

// entries decodes a mapping whose keys are names. It replaces the default mapping.
func (d *decoder) entries(n tree.Node, v reflect.Value, p at) {
	if !d.group(n, p) || n.Kind == tree.Null {
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.Fields)))
	for _, f := range n.Fields {
		key := reflect.ValueOf(f.Key)
		if v.MapIndex(key).IsValid() {
			d.add(&Fault{
				Rule: "repeated", Setting: p.entry(f.Key).name, Problem: "is set twice",
				Fix: "keep one of the two", Line: f.Line,
			})
			continue
		}
		elem := reflect.New(v.Type().Elem()).Elem()
		if elem.Type() == sinkType {
			elem.Set(reflect.ValueOf(newSink("")))
		}
		d.value(f.Value, elem, p.entry(f.Key))
		v.SetMapIndex(key, elem)
	}
}

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

// quantity decodes a duration or a size.
func (d *decoder) quantity(n tree.Node, v reflect.Value, p at) {
	var (
		number int64
		err    error
	)
	switch {
	case n.Kind != tree.String && n.Kind != tree.Number:
		d.unexpected(n, v, p)
		return
	case v.Type() == sizeType:
		var s Size
		s, err = ParseSize(n.Text)
		number = int64(s)
	default:
		var t time.Duration
		t, err = ParseDuration(n.Text)
		number = int64(t)
	}
	if err != nil {
		problem, fix, _ := strings.Cut(err.Error(), ": ")
		d.wrong(n, p, "is "+problem, fix)
		return
	}
	v.SetInt(number)
	d.bounds(n, v, p)
}

func (d *decoder) scalar(n tree.Node, v reflect.Value, p at) {
	switch {
	case v.Kind() == reflect.String && n.Kind == tree.String:
		v.SetString(n.Text)
	case v.Kind() == reflect.Bool && n.Kind == tree.Bool:
		v.SetBool(n.Text == "true")
	case (v.Kind() == reflect.Int || v.Kind() == reflect.Uint32) && n.Kind == tree.Number:
		number, err := wholeNumber(n.Text)
		if err != nil || v.Kind() == reflect.Uint32 && (number < 0 || number > math.MaxUint32) {
			d.wrong(n, p, "is not a whole number of a usable size", "write digits, such as 1000")
			return
		}
		if v.Kind() == reflect.Uint32 {
			v.SetUint(uint64(number))
		} else {
			v.SetInt(number)
		}
	default:
		d.unexpected(n, v, p)
		return
	}
	d.bounds(n, v, p)
}

var wholePattern = regexp.MustCompile(`^-?(0|[1-9][0-9]*(_[0-9]{3})*)$`)

// wholeNumber reads a number of plain digits, or in groups of three as 80_000. Octal and
// hexadecimal spellings are refused.
func wholeNumber(text string) (int64, error) {
	if !wholePattern.MatchString(text) {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
}

// unexpected refuses a value of a wrong kind.
func (d *decoder) unexpected(n tree.Node, v reflect.Value, p at) {
	want, fix := "text", "put it in quotes"
	switch {
	case v.Type() == durationType:
		want, fix = "a duration", "write a number with a unit, such as 5s or 7d"
	case v.Type() == sizeType:
		want, fix = "a size", "write a number with a unit, such as 256KB"
	case v.Kind() == reflect.Bool:
		want, fix = "true or false", "write true or false without quotes"
	case v.Kind() != reflect.String:
		want, fix = "a whole number", "write digits without quotes, such as 1000"
	case n.Kind == tree.List || n.Kind == tree.Map:
		fix = "write one text"
	}
	if n.Kind == tree.Null {
		fix = "give it a value or remove the line"
	}
	d.wrong(n, p, "is "+n.Kind.String()+" where "+want+" is expected", fix)
}

func (d *decoder) bounds(n tree.Node, v reflect.Value, p at) {
	if f := judge(byName[p.generic], p.name, v); f != nil {
		f.Line = n.Line
		d.add(f)
	}
}

// fieldNamed finds the field of a struct that a key names.
func fieldNamed(t reflect.Type, key string) (int, bool) {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("json") == key {
			return i, true
		}
	}
	return 0, false
}

func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("json")
	}
	return names
}

// instead says what an unknown key should have been: a neighbour spelt nearly so, a setting of that
// name elsewhere, or all there are.
func instead(t reflect.Type, p at, key string) string {
	names := fieldNames(t)
	if near := nearest(key, names); near != "" {
		return fmt.Sprintf("did you mean %s?", p.key(near).name)
	}
	if found := elsewhere(p, key); found != "" {
		return fmt.Sprintf("did you mean %s?", found)
	}
	slices.Sort(names)
	return "remove it; here are allowed: " + strings.Join(names, ", ")
}

// elsewhere returns a setting of that name in another group, or "". A setting that exists once is
// likelier than an option of a source, collection or sink.
func elsewhere(p at, key string) string {
	found := ""
	for _, s := range settings {
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
