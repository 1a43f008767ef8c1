// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lullhq/lull/internal/config/tree"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
)

// Every setting within its bounds is read back as it was written, even if the settings break a
// rule.
func TestAnySettingsSurviveJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := drawConfig(t)
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseJSON(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\ngot  %+v\nwant %+v", text, got, want)
		}
	})
}

func drawConfig(t *rapid.T) Config {
	c := Default()
	names := rapid.MapOfN(rapid.StringMatching(`[a-z][a-z0-9-]{0,8}`), rapid.Bool(), 0, 3)
	c.Collections, c.Sinks, c.Sources = map[string]Collection{}, map[string]Sink{}, map[string]Source{}
	for name := range names.Draw(t, "collections") {
		c.Collections[name] = Collection{}
	}
	for name := range names.Draw(t, "sinks") {
		c.Sinks[name] = newSink("memory")
	}
	for name := range names.Draw(t, "sources") {
		c.Sources[name] = Source{Kind: rapid.SampledFrom(source.Kinds()).Draw(t, "kind")}
	}
	c.Payload.Allow = make([]BucketPrefix, rapid.IntRange(0, 2).Draw(t, "places"))
	drawInto(t, reflect.ValueOf(&c).Elem(), at{})
	c.Complete()
	return c
}

// drawInto fills every setting of v with a value within its bounds.
func drawInto(t *rapid.T, v reflect.Value, p at) {
	switch v.Kind() {
	case reflect.Pointer:
		if rapid.Bool().Draw(t, p.name+" is set") {
			v.Set(reflect.New(v.Type().Elem()))
			drawInto(t, v.Elem(), p)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Tag.Get("json"); name != inline {
				drawInto(t, v.Field(i), p.key(name))
			} else {
				drawOptions(t, v, v.Field(i), p)
			}
		}
	case reflect.Map:
		for _, name := range sortedNames(v) {
			elem := reflect.New(v.Type().Elem()).Elem()
			elem.Set(v.MapIndex(reflect.ValueOf(name)))
			drawInto(t, elem, p.entry(name))
			v.SetMapIndex(reflect.ValueOf(name), elem)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.String {
			if !rapid.Bool().Draw(t, p.name+" is set") {
				return
			}
			v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 2).Draw(t, p.name), 2)) // maybe empty, but never nil
		}
		for i := range v.Len() {
			element := p.index(i)
			if v.Type().Elem().Kind() == reflect.String {
				element.generic = p.generic
			}
			drawInto(t, v.Index(i), element)
		}
	default:
		drawLeaf(t, byName()[p.generic], v, p.name)
	}
}

// drawOptions fills in the options of the kind that was chosen at random.
func drawOptions(t *rapid.T, v, options reflect.Value, p at) {
	kind := v.FieldByName("Kind").String()
	k, _ := registries[v.Type()].lookup(kind)
	if k.Options == nil {
		return
	}
	elem := reflect.New(reflect.TypeOf(k.Options)).Elem()
	elem.Set(reflect.ValueOf(k.Options)) // an option that JSON leaves out has the kind's default
	drawInto(t, elem, at{p.name, optionsOf(p.generic, kind)})
	options.Set(elem)
}

func drawLeaf(t *rapid.T, s setting.Setting, v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.String:
		switch {
		case s.Name == "sources.<name>.kind": // already chosen together with the source
		case s.Unit == setting.UnitChoice:
			v.SetString(rapid.SampledFrom(s.Choices).Draw(t, name))
		case s.Pattern != nil:
			v.SetString(rapid.StringMatching(s.Pattern.String()).Draw(t, name))
		default:
			v.SetString(rapid.String().Draw(t, name))
		}
	default:
		step := max(1, int64(s.Step))
		n := rapid.Int64Range(s.Min/step, s.Max/step).Draw(t, name) * step
		if v.Kind() == reflect.Uint32 {
			v.SetUint(uint64(n))
		} else {
			v.SetInt(n)
		}
	}
}

func TestZeroGroupSurvivesJSON(t *testing.T) {
	t.Parallel()
	want := Default()
	want.Debounce = Debounce{}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Config
	if err := json.Unmarshal(text, &got); err != nil || got.Debounce != want.Debounce {
		t.Errorf("got %+v and %v, want %+v", got.Debounce, err, want.Debounce)
	}
}

func TestUnmarshalKeepsWhatWasThereOnAnError(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Stack = "kept"
	if err := json.Unmarshal([]byte(`{"stack": 7}`), &c); err == nil || c.Stack != "kept" {
		t.Errorf("got %q and %v, want the old settings and an error", c.Stack, err)
	}
}

func TestErrorsOfDeployedSettingsNameTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.json")
	if _, err := LoadDeployed(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v, want it to say so", err)
	}
	for text, want := range map[string]string{
		`{"stack": "a"`:                           "config.json: parse settings: line 1: ends in the middle",
		`{"stack": "a"} {}`:                       "text follows the settings",
		"{\"a\":\n\n!}":                           "line 3",
		`{"stack": 7}`:                            "config.json: line 1: stack (7)",
		strings.Repeat("[", 40):                   tree.ErrTooDeep.Error(),
		strings.Repeat(" ", tree.MaxBytes) + "{}": tree.ErrTooLarge.Error(),
		``: "ends in the middle",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadDeployed(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: got %v, want %q", text, err, want)
		}
	}
	if err := os.WriteFile(path, []byte(`{"stack": "a", "sinks": {"search": {"kind": "opensearch", "url": "https://a.example.com", "index": "a"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := LoadDeployed(path); err != nil || c.Stack != "a" || c.Queues != Default().Queues {
		t.Errorf("got %+v and %v, want the defaults of stack a", c, err)
	}
}
