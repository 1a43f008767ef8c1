package source

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
)

// reserved is the key that sinks add to a document. A document that holds one of its own, because
// it was read back from a sink, loses it.
const reserved = "_lull"

// tree is a projection: the pointers of a source by their common beginnings. What a pointer names
// stays where it was: /details/title becomes {"details":{"title":...}}, an element of an array
// stays in an array. Values are copied byte for byte. The nil tree is no projection.
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
		p, err := newPointer(text)
		if err != nil {
			return nil, err
		}
		if len(p.tokens) > 0 && p.tokens[0] == reserved {
			return nil, fmt.Errorf("JSON pointer %q: the key %s belongs to lull", text, reserved)
		}
		t := root
		for _, token := range p.tokens {
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
	for i, c := range t.children {
		if c.token == token {
			return i
		}
	}
	return -1
}

// object makes the document of a payload, which must be a JSON object.
func (t *tree) object(data string) ([]byte, *event.Fault) {
	root := gjson.Parse(data)
	if !root.IsObject() {
		return nil, contract("data", "data is %s: send a JSON object", typeName(root))
	}
	if t == nil || t.leaf {
		return withoutReserved(root), nil
	}
	out, _ := t.cut(make([]byte, 0, len(data)), root)
	if len(out) == 0 {
		return []byte("{}"), nil
	}
	return out, nil
}

// cut appends what the tree selects of v. Nothing selected appends nothing: an object that lost
// everything is left out.
func (t *tree) cut(out []byte, v gjson.Result) ([]byte, bool) {
	switch {
	case t.leaf:
		return append(out, strings.TrimSpace(v.Raw)...), true
	case v.IsObject():
		// In the order of the configuration, so that of two members of one name the last one
		// counts.
		found := make([]gjson.Result, len(t.children))
		v.ForEach(func(name, value gjson.Result) bool {
			if c := t.find(name.Str); c >= 0 {
				found[c] = value
			}
			return true
		})
		return t.join(out, '{', '}', func(out []byte, sep bool, i int) ([]byte, bool) {
			if !found[i].Exists() {
				return out, false
			}
			start := len(out)
			if sep {
				out = append(out, ',')
			}
			out = gjson.AppendJSONString(out, t.children[i].token)
			out, ok := t.children[i].cut(append(out, ':'), found[i])
			if !ok {
				return out[:start], false
			}
			return out, true
		}, len(t.children))
	case v.IsArray():
		elements := v.Array()
		return t.join(out, '[', ']', func(out []byte, sep bool, i int) ([]byte, bool) {
			c := t.find(strconv.Itoa(i))
			if c < 0 {
				return out, false
			}
			start := len(out)
			if sep {
				out = append(out, ',')
			}
			out, ok := t.children[c].cut(out, elements[i])
			if !ok {
				return out[:start], false
			}
			return out, true
		}, len(elements))
	}
	return out, false // a scalar on the way to what a pointer names
}

// join appends n parts between brackets, or nothing where no part has anything.
func (t *tree) join(out []byte, open, shut byte, part func(out []byte, sep bool, i int) ([]byte, bool), n int) ([]byte,
	bool,
) {
	start := len(out)
	out = append(out, open)
	any := false
	for i := range n {
		var ok bool
		out, ok = part(out, any, i)
		any = any || ok
	}
	if !any {
		return out[:start], false
	}
	return append(out, shut), true
}

// withoutReserved copies an object as it is, except for lull's own key.
func withoutReserved(root gjson.Result) []byte {
	has := false
	root.ForEach(func(name, _ gjson.Result) bool {
		has = name.Str == reserved
		return !has
	})
	if !has {
		return []byte(strings.TrimSpace(root.Raw))
	}
	out := append(make([]byte, 0, len(root.Raw)), '{')
	root.ForEach(func(name, value gjson.Result) bool {
		if name.Str != reserved {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(append(out, name.Raw...), ':'), value.Raw...)
		}
		return true
	})
	return append(out, '}')
}
