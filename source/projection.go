package source

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
)

// reserved is the key that sinks add to a document. If a payload has this key, because it was read
// back from a sink, the key is removed.
const reserved = "_lull"

// tree is a projection: the pointers of a source, grouped by their common beginnings. A value keeps
// its place: /details/title becomes {"details":{"title":...}}, and an element of an array stays in
// an array. Values are copied byte for byte. The nil tree is not a projection.
type tree struct {
	token    string
	leaf     bool // everything below belongs to the document
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

// object makes the document of a payload, which must be a JSON object.
func (t *tree) object(data string) ([]byte, *event.Invalid) {
	root := gjson.Parse(data)
	if !root.IsObject() {
		return nil, Invalid("data", "data is %s: send a JSON object", TypeName(root))
	}
	if t == nil || t.leaf {
		return withoutReserved(root), nil
	}
	out := t.cut(make([]byte, 0, len(data)), root)
	if len(out) == 0 {
		return []byte("{}"), nil
	}
	return out, nil
}

// cut appends what the tree selects of v. Nothing selected appends nothing: an object that lost
// everything is left out.
func (t *tree) cut(out []byte, v gjson.Result) []byte {
	start := len(out)
	switch {
	case t.leaf:
		return asItIs(out, v)
	case v.IsObject():
		// In the order of the configuration, so that of two members of one name the last one
		// counts.
		found := make([]gjson.Result, len(t.children))
		for name, value := range v.ForEach {
			if c := t.find(name.Str); c >= 0 {
				found[c] = value
			}
		}
		out = append(out, '{')
		for i, c := range t.children {
			if found[i].Exists() {
				out = part(out, Quoted(c.token), found[i], c.cut)
			}
		}
		return closed(out, start, '}')
	case v.IsArray():
		out = append(out, '[')
		for i, element := range v.Array() {
			if c := t.find(strconv.Itoa(i)); c >= 0 {
				out = part(out, "", element, t.children[c].cut)
			}
		}
		return closed(out, start, ']')
	}
	return out // a scalar on the way to the place of a pointer
}

// part appends a member or an element, with the comma before it. If add appends nothing, part
// appends nothing. name is the member's name, in JSON.
func part(out []byte, name string, v gjson.Result, add func([]byte, gjson.Result) []byte) []byte {
	start := len(out)
	if !opened(out) {
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
		out = part(out, name.Raw, value, add) // an element's name is empty
	}
	return append(out, last)
}

func asItIs(out []byte, v gjson.Result) []byte { return append(out, strings.TrimSpace(v.Raw)...) }

// opened reports whether nothing was written yet after an opening bracket.
func opened(out []byte) bool {
	last := out[len(out)-1]
	return last == '{' || last == '['
}

// closed ends an object or array that began at start, or takes it back where it is empty.
func closed(out []byte, start int, bracket byte) []byte {
	if opened(out) {
		return out[:start]
	}
	return append(out, bracket)
}

// withoutReserved copies an object as it is, except for lull's own key.
func withoutReserved(root gjson.Result) []byte {
	if !event.Child(root, reserved).Exists() {
		return []byte(strings.TrimSpace(root.Raw))
	}
	out := append(make([]byte, 0, len(root.Raw)), '{')
	for name, value := range root.ForEach {
		if name.Str != reserved {
			out = part(out, name.Raw, value, asItIs)
		}
	}
	return append(out, '}')
}
