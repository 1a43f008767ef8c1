// SPDX-License-Identifier: Apache-2.0

package enrich

import (
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// Inputs are pointers to the parts of a document that are sent to the service.
type Inputs []source.Pointer

// ParseInputs reads JSON pointers.
func ParseInputs(texts []string) (Inputs, error) {
	in := make(Inputs, len(texts))
	for i, text := range texts {
		p, err := source.ParsePointer(text)
		if err != nil {
			return nil, err
		}
		in[i] = p
	}
	return in, nil
}

// Of returns the inputs of a document that is valid JSON. The result is an object that has the
// value at each pointer, under the text of the pointer. Of leaves out values that the document
// lacks. It returns nil if the document lacks all of them.
func (in Inputs) Of(plain []byte) json.RawMessage {
	var out []byte
	all := gjson.ParseBytes(plain)
	for _, p := range in {
		v := p.In(all)
		if !v.Exists() {
			continue
		}
		if out == nil {
			out = append(out, '{')
		} else {
			out = append(out, ',')
		}
		out = gjson.AppendJSONString(out, p.Text)
		out = append(out, ':')
		out = append(out, v.Raw...)
	}
	if out == nil {
		return nil
	}
	return append(out, '}')
}

var errReserved = errors.New("its fields have the member " + sink.MetaField + ", which is lull's")

// Merge merges the object fields into the object plain, a document without insignificant space.
// Each member of fields replaces the whole member with that name, or is added at the end. A null
// member removes the document's member (as in RFC 7396, but only at the top level). All other bytes
// are unchanged.
func Merge(plain []byte, fields json.RawMessage) ([]byte, error) {
	values, order := map[string]string{}, []string(nil)
	reserved := false
	gjson.ParseBytes(fields).ForEach(func(name, value gjson.Result) bool {
		if _, again := values[name.Str]; !again {
			order = append(order, name.Str)
		}
		values[name.Str] = value.Raw
		reserved = reserved || name.Str == sink.MetaField
		return true
	})
	if reserved {
		return nil, errReserved
	}
	out := append(make([]byte, 0, len(plain)+len(fields)), '{')
	member := func(name, value string) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	placed := map[string]bool{}
	gjson.ParseBytes(plain).ForEach(func(name, value gjson.Result) bool {
		by, replaced := values[name.Str]
		switch {
		case !replaced:
			member(name.Raw, value.Raw)
		case by != "null" && !placed[name.Str]:
			member(name.Raw, by)
		}
		placed[name.Str] = placed[name.Str] || replaced
		return true
	})
	for _, name := range order {
		if by := values[name]; by != "null" && !placed[name] {
			member(string(gjson.AppendJSONString(nil, name)), by)
		}
	}
	return append(out, '}'), nil
}
