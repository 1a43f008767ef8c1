// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config/tree"

	"github.com/lullhq/lull/setting"
)

// leaves lists the generic names of all settings that a type has.
func leaves(t reflect.Type, p at) []string {
	switch {
	case t.Kind() == reflect.Pointer:
		return leaves(t.Elem(), p)
	case t.Kind() == reflect.Map:
		return leaves(t.Elem(), p.entry("x"))
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return leaves(t.Elem(), p.index(0))
	case t.Kind() != reflect.Struct:
		return []string{p.generic}
	}
	var names []string
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("json") == inline {
			continue // the options of a kind are compared when the kind registers
		}
		names = append(names, leaves(t.Field(i).Type, p.key(t.Field(i).Tag.Get("json")))...)
	}
	return names
}

func TestEverySettingIsDescribedOnce(t *testing.T) {
	t.Parallel()
	var described []string
	for _, s := range settings() {
		if s.generic == s.Name {
			described = append(described, s.Name)
		}
		if s.Doc == "" || s.Unit == "" {
			t.Errorf("%s: says nothing", s.Name)
		}
	}
	inStruct := leaves(reflect.TypeFor[Config](), at{})
	slices.Sort(described)
	slices.Sort(inStruct)
	if !slices.Equal(described, inStruct) {
		t.Errorf("descriptions and struct differ:\ngot  %q\nwant %q", described, inStruct)
	}
}

// file builds the tree of a file that sets one setting, on line 7. For an option of a kind, the
// file also sets that kind.
func file(s described, value tree.Node) tree.Node {
	value.Line = 7
	group, rest, ofKind := strings.Cut(s.generic, ":")
	if ofKind {
		kind, name, _ := strings.Cut(rest, ".")
		value = within(name, value)
		value.Fields = append(value.Fields, tree.Field{Key: "kind", Value: tree.Node{Kind: tree.String, Text: kind}})
	}
	return within(group, value)
}

// within returns the tree in which the value has this dotted name.
func within(name string, value tree.Node) tree.Node {
	for _, part := range slices.Backward(strings.Split(name, ".")) {
		key, isList := strings.CutSuffix(part, "[]")
		if isList {
			value = tree.Node{Kind: tree.List, Items: []tree.Node{value}}
		}
		if key == "<name>" {
			key = "search"
		}
		value = tree.Node{Kind: tree.Map, Fields: []tree.Field{{Key: key, Value: value}}}
	}
	return value
}

// concrete returns the name that a fault uses for a setting in the tree of file.
func concrete(name string) string {
	return strings.NewReplacer("<name>", "search", "[]", "[0]").Replace(name)
}

func number(s setting.Setting, n int64) tree.Node {
	switch s.Unit {
	case setting.UnitDuration:
		return tree.Node{Kind: tree.String, Text: time.Duration(n).String()}
	case setting.UnitSize:
		return tree.Node{Kind: tree.String, Text: strconv.FormatInt(n, 10) + "B"}
	case setting.UnitRate:
		return tree.Node{Kind: tree.Number, Text: setting.Rate(n).String()}
	default:
		return tree.Node{Kind: tree.Number, Text: strconv.FormatInt(n, 10)}
	}
}

// boundsFault returns the fault of a setting's own bounds or form, if there is one.
func boundsFault(err error, name string) *Fault {
	for _, f := range Faults(err) {
		if strings.HasPrefix(f.Setting, name) && (f.Rule == "bounds" || f.Rule == "form") {
			return f
		}
	}
	return nil
}

func TestNumbersAreHeldToTheirBounds(t *testing.T) {
	t.Parallel()
	for _, s := range settings() {
		if !s.IsNumber() {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			if s.Min >= s.Max {
				t.Fatalf("got bounds %d to %d, want a range", s.Min, s.Max)
			}
			step := max(1, int64(s.Step))
			bad := map[int64]string{s.Max + step: s.Format(s.Max)}
			if s.Unit != setting.UnitSize || s.Min > 0 {
				bad[s.Min-step] = s.Format(s.Min)
			}
			if s.Step > 0 {
				bad[s.Min+step+step/2] = s.Format(s.Min + 2*step)
			}
			for n, fix := range bad {
				_, err := Decode(file(s, number(s.Setting, n)))
				f := boundsFault(err, concrete(s.Name))
				if f == nil || f.Line != 7 || f.Setting != concrete(s.Name) {
					t.Errorf("%s: got %v, want a fault on line 7", s.Format(n), err)
					continue
				}
				if f.Rule == "bounds" && !strings.Contains(f.Fix, fix) {
					t.Errorf("%s: fix: got %q, want it to name %s", s.Format(n), f.Fix, fix)
				}
			}
			for _, n := range []int64{s.Min, s.Max} {
				c, err := Decode(file(s, number(s.Setting, n)))
				if err != nil {
					t.Errorf("%s: got %v, want it accepted", s.Format(n), err)
				}
				if f := boundsFault(c.Validate(), concrete(s.Name)); f != nil {
					t.Errorf("%s: got %v, want it within bounds", s.Format(n), f)
				}
			}
		})
	}
}

func TestChoicesAndTextsAreHeldToTheirShape(t *testing.T) {
	t.Parallel()
	for _, s := range settings() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			if s.Unit == setting.UnitChoice {
				for _, choice := range s.Choices {
					_, err := Decode(file(s, tree.Node{Kind: tree.String, Text: choice}))
					if f := boundsFault(err, concrete(s.Name)); f != nil {
						t.Errorf("%s: got %v, want it accepted", choice, f)
					}
				}
			}
			if s.Unit != setting.UnitChoice && s.Pattern == nil {
				return
			}
			value := tree.Node{Kind: tree.String, Text: "No\tsuch value~"}
			if s.Unit == setting.UnitList {
				value = tree.Node{Kind: tree.List, Items: []tree.Node{value}}
			}
			_, err := Decode(file(s, value))
			f := boundsFault(err, concrete(s.Name))
			if f == nil || !strings.Contains(f.Fix, "write ") && !strings.Contains(f.Fix, "did you mean") {
				t.Errorf("got %v, want a fault with a fix", err)
			}
		})
	}
}

func TestValidateHoldsToBoundsWithoutAFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		change  func(c *Config)
		setting string
		fix     string
	}{
		{
			"empty choice", ofSource(func(s *Source) { s.NoVersion = "" }),
			"sources.native.noVersion", "refuse, arrival",
		},
		{
			"override", func(c *Config) { news(c, Collection{CapGrace: ptr(2 * minute)}) }, "collections.news.capGrace",
			"at most 1m",
		},
		{
			"list", func(c *Config) { c.Payload.HTTPHosts = []string{"ok.example.org", "intranet"} },
			"payload.httpHosts[1]", "host name",
		},
		{
			"bucket", func(c *Config) { c.Payload.Allow = []BucketPrefix{{Bucket: "A"}} }, "payload.allow[0].bucket",
			"bucket",
		},
		{
			"prefix that also matches other folders", func(c *Config) {
				c.Payload.Allow = []BucketPrefix{{Bucket: "media", Prefix: "a/"}, {Bucket: "media", Prefix: "a"}}
			},
			"payload.allow[1].prefix", "ends in /",
		},
		{
			"prefix that is a pattern of policies",
			func(c *Config) { c.Payload.Allow = []BucketPrefix{{Bucket: "media", Prefix: "*/"}} },
			"payload.allow[0].prefix", "without *",
		},
		{
			"pointer", ofSource(func(s *Source) { s.Projection = []string{"title"} }),
			"sources.native.projection[0]", "JSON pointer",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := Default()
			tt.change(&c)
			var found bool
			for _, f := range Faults(c.Validate()) {
				if f.Rule == "bounds" && f.Setting == tt.setting {
					found = true
					if !strings.Contains(f.Fix, tt.fix) {
						t.Errorf("fix: got %q, want %q in it", f.Fix, tt.fix)
					}
				}
			}
			if !found {
				t.Errorf("got %v, want a fault of %s", c.Validate(), tt.setting)
			}
		})
	}
}

func TestPasswordsAreNotRepeated(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://me:hunter2@host", "me:hunter2@host", "http://me:hunter2@ho st:port",
		"://me:hunter2@@",
	} {
		c := Default()
		openSearch(&c)
		setSink(&c, func(s *Sink) { s.URL = address })
		err := c.Validate()
		if err == nil || strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("%s: got %v, want a fault without the password", address, err)
		}
	}
}
