// SPDX-License-Identifier: Apache-2.0

package transition

import (
	_ "embed" // schemas.json
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Schema is a part of CloudFormation's schema of a resource type. It lists names of top-level
// properties.
type Schema struct {
	// CreateOnly cannot be changed in place: another value needs another resource.
	// SometimesCreateOnly cannot be changed in some cases, and is treated as CreateOnly.
	CreateOnly          []string `json:"createOnly"`
	SometimesCreateOnly []string `json:"sometimesCreateOnly"`
	// Identifier identifies a resource for an import. ReadOnly is only known once a resource
	// exists.
	Identifier []string `json:"identifier"`
	ReadOnly   []string `json:"readOnly"`
	// Apart are the properties whose values distinguish a resource from every other resource in the
	// account and region. It is empty if the service generates a name.
	Apart []string `json:"apart"`
	// Importable says whether a stack can import an existing resource.
	Importable bool `json:"importable"`
}

//go:embed schemas.json
var schemasText []byte

// Schemas are the schemas of the types that lull deploys, by type.
var Schemas = sync.OnceValue(func() map[string]Schema {
	var file struct{ Types map[string]Schema }
	if err := json.Unmarshal(schemasText, &file); err != nil {
		panic(fmt.Errorf("schemas.json: %w", err)) // the file is part of the program
	}
	return file.Types
})

// Template is the part of a CloudFormation template that a comparison needs.
type Template struct{ Resources map[string]Resource }

// Resource is one resource of a template.
type Resource struct {
	Type                string
	Properties          map[string]any
	DeletionPolicy      string
	UpdateReplacePolicy string
}

// maxTemplate is more than the megabyte that CloudFormation allows, because quotes are escaped.
const maxTemplate = 4 << 20

// ReadTemplate reads a template in JSON, or the answer of `aws cloudformation get-template`, which
// contains a template.
func ReadTemplate(r io.Reader) (Template, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxTemplate+1))
	if err != nil {
		return Template{}, fmt.Errorf("read the template: %w", err)
	}
	if len(text) > maxTemplate {
		return Template{}, fmt.Errorf("read the template: it is larger than %d bytes", maxTemplate)
	}
	return parse(text)
}

func parse(text []byte) (Template, error) {
	var answer struct {
		Template
		TemplateBody json.RawMessage
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return Template{}, fmt.Errorf("parse the template: %w", err)
	}
	if body := answer.TemplateBody; body != nil {
		var quoted string
		if json.Unmarshal(body, &quoted) == nil {
			body = []byte(quoted)
		}
		return parse(body)
	}
	if len(answer.Resources) == 0 {
		return Template{}, errors.New("parse the template: it has no Resources")
	}
	return answer.Template, nil
}

// Action is what CloudFormation does to a resource.
type Action string

// The actions.
const (
	Created  Action = "created"
	Updated  Action = "updated" // in place
	Replaced Action = "replaced"
	Removed  Action = "removed"
	// Refused means that the deploy fails. Either the resource would get the name of another resource
	// that still exists, or its type would change.
	Refused Action = "refused"
	// Lost is a new subscription that equals a subscription which the same deploy removes. SNS returns
	// the existing subscription, and the deploy deletes it at its end.
	Lost Action = "lost"
)

// Change is what a deploy does to one resource.
type Change struct {
	ID     string   `json:"id"` // logical id in the template
	Type   string   `json:"type"`
	Name   string   `json:"name,omitempty"` // empty if the template has no name
	Action Action   `json:"action"`
	By     []string `json:"by,omitempty"` // the properties that change
	// Kept says that the former resource stays in the account, outside of the stack.
	Kept bool `json:"kept,omitempty"`
}

// holders are the types of resources that hold messages, rows or objects.
var holders = []string{"AWS::DynamoDB::GlobalTable", "AWS::S3::Bucket", "AWS::SQS::Queue"}

// Serious reports whether an operator should read this before a deploy. A version of a function is
// not serious: every deploy that changes the function replaces its version.
func (c Change) Serious() bool {
	if c.Action == Removed {
		return c.Kept || slices.Contains(holders, c.Type)
	}
	return slices.Contains([]Action{Refused, Lost, Replaced}, c.Action)
}

// Templates lists, by logical id, what a deploy of the newer template does to a stack that was
// deployed with the older template. It omits unchanged resources.
func Templates(older, newer Template) []Change {
	d := difference{older, newer, make(map[string]Change)}
	for id, n := range newer.Resources {
		if o, ok := older.Resources[id]; !ok {
			d.put(id, n, Created)
		} else if o.Type != n.Type {
			d.put(id, n, Refused)
		}
	}
	for id, o := range older.Resources {
		if _, ok := newer.Resources[id]; !ok {
			d.put(id, o, Removed)
		}
	}
	for d.spread() {
	}
	d.collide()
	return slices.SortedFunc(
		maps.Values(d.changes),
		func(a, b Change) int { return strings.Compare(a.ID, b.ID) },
	)
}

type difference struct {
	older, newer Template
	changes      map[string]Change
}

func (d *difference) put(id string, r Resource, a Action, by ...string) {
	o := d.older.Resources[id]
	d.changes[id] = Change{
		ID: id, Type: r.Type, Name: r.name(), Action: a, By: by,
		Kept: a == Removed && strings.HasPrefix(o.DeletionPolicy, "Retain") ||
			a == Replaced && o.UpdateReplacePolicy == "Retain" && r.UpdateReplacePolicy == "Retain",
	}
}

// spread finds the effects of changed properties on their resources, and reports whether it found
// new effects. If a resource is replaced, each resource that refers to it also changes.
func (d *difference) spread() (more bool) {
	for id, n := range d.newer.Resources {
		o, ok := d.older.Resources[id]
		if !ok || o.Type != n.Type {
			continue
		}
		if a, by := d.update(o, n); a != d.changes[id].Action || len(by) > len(d.changes[id].By) {
			d.put(id, n, a, by...)
			more = true
		}
	}
	return more
}

// update returns what happens to a resource that both templates have, and because of which
// properties.
func (d *difference) update(o, n Resource) (a Action, by []string) {
	s := Schemas()[n.Type]
	fixed := slices.Concat(s.CreateOnly, s.SometimesCreateOnly)
	replaced := false
	for _, p := range slices.Sorted(maps.Keys(merged(o.Properties, n.Properties))) {
		if reflect.DeepEqual(o.Properties[p], n.Properties[p]) && !d.moved(n.Properties[p]) {
			continue
		}
		by = append(by, p)
		replaced = replaced || slices.Contains(fixed, p)
	}
	switch {
	case replaced && o.apart() != "" && !overlap(by, s.Apart):
		return Refused, by // CloudFormation cannot replace a resource that keeps its name
	case replaced:
		return Replaced, by
	case len(by) > 0 || o.DeletionPolicy != n.DeletionPolicy || o.UpdateReplacePolicy != n.UpdateReplacePolicy:
		return Updated, by
	}
	return "", nil
}

// moved reports whether a value refers to a resource that is replaced.
func (d *difference) moved(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, d.moved)
	case map[string]any:
		for key, inner := range v {
			id, _ := inner.(string)
			if list, ok := inner.([]any); ok && key == "Fn::GetAtt" && len(list) > 0 {
				id, _ = list[0].(string)
			}
			if (key == "Ref" || key == "Fn::GetAtt") && d.changes[id].Action == Replaced || d.moved(inner) {
				return true
			}
		}
	}
	return false
}

// collide finds resources that are created while another resource still has their name.
// CloudFormation first creates new resources, and removes old resources at the end.
func (d *difference) collide() {
	goes := make(map[string]string)
	for id, c := range d.changes {
		if o := d.older.Resources[id]; (c.Action == Removed || c.Action == Replaced) && o.apart() != "" {
			goes[o.apart()] = id
		}
	}
	for id, c := range d.changes {
		n := d.newer.Resources[id]
		if c.Action != Created && c.Action != Replaced {
			continue
		}
		if other, ok := goes[n.apart()]; ok && other != id {
			c.Action = Refused
			if c.Type == "AWS::SNS::Subscription" {
				c.Action = Lost
			}
			c.By = append(c.By, "the name of "+other)
			d.changes[id] = c
		}
	}
}

// apart returns a text that distinguishes a resource from all others. It is empty if the template
// does not contain it, because the service generates a name.
func (r Resource) apart() string {
	parts := []any{r.Type}
	for _, p := range Schemas()[r.Type].Apart {
		if v, ok := r.Properties[p]; ok {
			parts = append(parts, p, v)
		} else if p != "EventBusName" { // the default bus
			return ""
		}
	}
	text, err := json.Marshal(parts)
	if err != nil || len(parts) == 1 {
		return ""
	}
	return string(text)
}

// name returns the resource's name, or an empty text if the template has none.
func (r Resource) name() string {
	for _, p := range Schemas()[r.Type].Apart {
		if text, ok := r.Properties[p].(string); ok && strings.HasSuffix(p, "Name") {
			return text
		}
	}
	return ""
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// merged returns the entries of a and b. If both have an entry with the same name, it returns the
// entry of b.
func merged[V any](a, b map[string]V) map[string]V {
	all := make(map[string]V, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// Says explains an action in a few words.
func (c Change) Says() string {
	text := strings.Join(c.By, ", ")
	switch {
	case c.Action == Lost:
		return "the deploy deletes an equal subscription at its end, and with it this one: " + text
	case c.Action == Refused:
		return "the deploy fails: CloudFormation cannot create this resource while the old one exists: " + text
	case c.Kept:
		return strings.TrimPrefix(text+"; the old resource stays in the account, outside of the stack", "; ")
	case c.Serious():
		return strings.TrimPrefix(text+"; the old resource is deleted with its contents", "; ")
	}
	return text
}
