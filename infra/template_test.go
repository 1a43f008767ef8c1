// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/deploy/names"
)

// template is a synthesised stack.
type template struct {
	Resources map[string]resource
	Outputs   map[string]any

	assets struct {
		Files map[string]struct {
			Source struct{ Path, Packaging string }
		}
	}
}

type resource struct {
	Type                string
	Properties          map[string]any
	DeletionPolicy      string
	UpdateReplacePolicy string
	UpdatePolicy        map[string]any
	Metadata            map[string]any
}

// all returns the resources of a type, by logical id.
func (s *template) all(kind string) map[string]resource {
	found := make(map[string]resource)
	for id, r := range s.Resources {
		if r.Type == kind {
			found[id] = r
		}
	}
	return found
}

// named returns the resource of a type whose property has that value.
func (s *template) named(t *testing.T, kind, property, value string) resource {
	t.Helper()
	for _, r := range s.all(kind) {
		if s.text(r.Properties[property]) == value {
			return r
		}
	}
	t.Fatalf("no %s with %s %s", kind, property, value)
	return resource{}
}

// text returns a value as readable text. A reference becomes the name of its resource, and a join
// becomes one text.
func (s *template) text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case map[string]any:
		if ref, ok := v["Ref"].(string); ok {
			return s.reference(ref)
		}
		if get := items(v["Fn::GetAtt"]); len(get) == 2 {
			if get[1] != "Arn" {
				return s.reference(word(get[0])) + "." + word(get[1])
			}
			return s.reference(word(get[0]))
		}
		if join := items(v["Fn::Join"]); len(join) == 2 {
			var parts []string
			for _, part := range items(join[1]) {
				parts = append(parts, s.text(part))
			}
			return strings.Join(parts, word(join[0]))
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// reference returns the name of a resource, or the path of the resource in the stack if it has no
// name.
func (s *template) reference(id string) string {
	r, ok := s.Resources[id]
	if !ok {
		return "${" + id + "}"
	}
	for _, property := range []string{
		"TableName", "BucketName", "QueueName", "FunctionName", "LogGroupName",
		"StateMachineName", "RoleName",
	} {
		if name := s.text(r.Properties[property]); name != "" && r.Type != "AWS::Lambda::Alias" &&
			r.Type != "AWS::Lambda::Version" {
			kind := strings.ToLower(r.Type[strings.LastIndex(r.Type, ":")+1:])
			return "{" + kind + " " + name + "}"
		}
	}
	return "{" + strings.TrimSuffix(word(r.Metadata["aws:cdk:path"]), "/Resource") + "}"
}

// items returns a list, or nil if the value is not a list.
func items(v any) []any {
	list, _ := v.([]any)
	return list
}

// word returns a text, or an empty one if the value is not a text.
func word(v any) string {
	text, _ := v.(string)
	return text
}

// number returns a number, or 0 if the value is not a number.
func number(v any) float64 {
	n, _ := v.(float64)
	return n
}

// fields returns an object, or nil if the value is not an object.
func fields(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// dig follows names and indices into a value.
func dig(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = fields(v)[step]
		case int:
			list := items(v)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// same compares the value at each path with the wanted one. It compares texts as [template.text]
// writes them.
func (s *template) same(t *testing.T, what string, r resource, want map[string]any) {
	t.Helper()
	for path, value := range want {
		var steps []any
		for _, step := range strings.Split(path, ".") {
			var n int
			if _, err := fmt.Sscanf(step, "#%d", &n); err == nil {
				steps = append(steps, n)
				continue
			}
			steps = append(steps, step)
		}
		got := dig(r.Properties, steps...)
		if _, isText := value.(string); isText {
			got = s.text(got)
		}
		if !reflect.DeepEqual(got, value) {
			t.Errorf("%s: %s is %v, want %v", what, path, got, value)
		}
	}
}

// statements returns the statements of a policy document.
func statements(document any) []map[string]any {
	var all []map[string]any
	for _, s := range items(dig(document, "Statement")) {
		all = append(all, fields(s))
	}
	return all
}

// grant is one statement of a role's policy.
type grant struct {
	role        string // the path of the role
	sid         string
	actions, on []string
	statement   map[string]any
}

// grants returns the statements of all roles.
func (s *template) grants() []grant {
	var all []grant
	for _, r := range s.all("AWS::IAM::Role") {
		path := strings.TrimSuffix(word(r.Metadata["aws:cdk:path"]), "/Resource")
		for _, st := range statements(dig(r.Properties, "Policies", 0, "PolicyDocument")) {
			all = append(all, grant{path, word(st["Sid"]), s.texts(st["Action"]), s.texts(st["Resource"]), st})
		}
	}
	return all
}

// texts returns a list of texts for a value that may be one text or a list.
func (s *template) texts(v any) []string {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var all []string
	for _, item := range list {
		all = append(all, s.text(item))
	}
	slices.Sort(all)
	return all
}

// alias returns the alias that a mapping calls, or the zero resource if the mapping calls no alias.
// CDK takes the function's name from the alias's ARN, and appends the alias's name.
func (s *template) alias(mapping resource) resource {
	id := word(dig(mapping.Properties["FunctionName"], "Fn::Join", 1, 0, "Fn::Select", 1, "Fn::Split", 1, "Ref"))
	if r := s.Resources[id]; r.Type == "AWS::Lambda::Alias" &&
		dig(mapping.Properties["FunctionName"], "Fn::Join", 1, 1) == ":"+names.Alias {
		return r
	}
	return resource{}
}
