// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
)

// reserved is the key that sinks add to a document. A payload that was read back from a sink has
// this key, and lull removes the key.
const reserved = "_lull"

// tree is a projection: the pointers of a source, as a tree of their tokens. A value keeps its
// place: /details/title becomes {"details":{"title":...}}, and an element of an array stays in an
// array. Values are copied byte for byte. A nil tree means that there is no projection.
type tree struct {
	token    string
	leaf     bool // the whole value belongs to the document
	children []*tree
}

func newTree(pointers []string) (*tree, error) {
	if len(pointers) == 0 {
		return nil, nil
	}
	root := &tree{}
	for _, text := range pointers {
		p, err := ParsePointer(text)
		if err != nil {
			return nil, err
		}
		if len(p.Tokens) > 0 && p.Tokens[0] == reserved {
			return nil, fmt.Errorf("JSON pointer %q: the key %s belongs to lull", text, reserved)
		}
		t := root
		for _, token := range p.Tokens {
			t = t.grow(token)
		}
		t.leaf = true
	}
	return root, nil
}

func (t *tree) grow(token string) *tree {
	if c := t.find(token); c >= 0 {
		return t.children[c]
	}
	t.children = append(t.children, &tree{token: token})
	return t.children[len(t.children)-1]
}

func (t *tree) find(token string) int {
	return slices.IndexFunc(t.children, func(c *tree) bool { return c.token == token })
}

// object makes the document from a payload, which must be a JSON object.
func (t *tree) object(data string) ([]byte, *event.Invalid) {
	root := gjson.Parse(data)
	if !root.IsObject() {
		return nil, Invalid("data", "data is %s: send a JSON object", TypeName(root))
	}
	if t == nil || t.leaf {
		return withoutReserved(root), nil
	}
	out := t.appendSelected(make([]byte, 0, len(data)), root)
	if len(out) == 0 {
		return []byte("{}"), nil
	}
	return out, nil
}

// appendSelected appends the parts of v that the tree selects. If the tree selects nothing of an
// object or array, appendSelected appends nothing.
func (t *tree) appendSelected(out []byte, v gjson.Result) []byte {
	start := len(out)
	switch {
	case t.leaf:
		return appendRaw(out, v)
	case v.IsObject():
		// If two members have the same name, the last member counts. The document has its members
		// in the order of the settings.
		found := make([]gjson.Result, len(t.children))
		for name, value := range v.ForEach {
			if c := t.find(name.Str); c >= 0 {
				found[c] = value
			}
		}
		out = append(out, '{')
		for i, c := range t.children {
			if found[i].Exists() {
				out = appendPart(out, Quoted(c.token), found[i], c.appendSelected)
			}
		}
		return closeOrDrop(out, start, '}')
	case v.IsArray():
		out = append(out, '[')
		for i, element := range v.Array() {
			if c := t.find(strconv.Itoa(i)); c >= 0 {
				out = appendPart(out, "", element, t.children[c].appendSelected)
			}
		}
		return closeOrDrop(out, start, ']')
	}
	return out // the pointer leads into a scalar, which has no parts
}

// appendPart appends a member or an element, and a comma before it if needed. If add appends
// nothing, appendPart appends nothing. The argument name is the member's name in JSON.
func appendPart(out []byte, name string, v gjson.Result, add func([]byte, gjson.Result) []byte) []byte {
	start := len(out)
	if !isOpen(out) {
		out = append(out, ',')
	}
	if name != "" {
		out = append(append(out, name...), ':')
	}
	head := len(out)
	if out = add(out, v); len(out) == head {
		return out[:start]
	}
	return out
}

// AppendEach appends an object or an array, and calls add to append each of its values. It omits a
// value for which add appends nothing.
func AppendEach(out []byte, v gjson.Result, add func(out []byte, value gjson.Result) []byte) []byte {
	first, last := byte('{'), byte('}')
	if v.IsArray() {
		first, last = '[', ']'
	}
	out = append(out, first)
	for name, value := range v.ForEach {
		out = appendPart(out, name.Raw, value, add) // name.Raw is empty for an element of an array
	}
	return append(out, last)
}

func appendRaw(out []byte, v gjson.Result) []byte { return append(out, strings.TrimSpace(v.Raw)...) }

// isOpen reports whether the text ends with an opening bracket.
func isOpen(out []byte) bool {
	last := out[len(out)-1]
	return last == '{' || last == '['
}

// closeOrDrop closes an object or array that began at start. If the object or array is empty, it is
// removed.
func closeOrDrop(out []byte, start int, bracket byte) []byte {
	if isOpen(out) {
		return out[:start]
	}
	return append(out, bracket)
}

// withoutReserved copies an object without lull's own key.
func withoutReserved(root gjson.Result) []byte {
	if !event.Child(root, reserved).Exists() {
		return []byte(strings.TrimSpace(root.Raw))
	}
	out := append(make([]byte, 0, len(root.Raw)), '{')
	for name, value := range root.ForEach {
		if name.Str != reserved {
			out = appendPart(out, name.Raw, value, appendRaw)
		}
	}
	return append(out, '}')
}
