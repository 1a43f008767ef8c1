package source

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/shard"
)

// stream is the format dynamodb-stream: one record of DynamoDB Streams, as EventBridge Pipes sends
// it or in Lambda's list of Records. Events have no time: its resolution is a second or so, and
// sequence numbers never repeat.
type stream struct{ *rules }

func (s *stream) decode(o origin, b event.Body) event.Result {
	if f := object(b); f != nil {
		return failed(f)
	}
	root := gjson.Parse(b.Text)
	change := child(root, "dynamodb")
	if !change.IsObject() {
		return failed(contract("dynamodb", "dynamodb is %s: the message is no record of DynamoDB Streams",
			typeName(change)))
	}
	id, f := streamID(child(change, "Keys"))
	if f != nil {
		return failed(f)
	}
	d := draft{op: shard.Put, version: version{"SequenceNumber", child(change, "SequenceNumber")}}
	if d.doc, f = s.id("", "Keys", id); f != nil {
		return failed(f)
	}
	switch name := child(root, "eventName").Str; name {
	case "INSERT", "MODIFY":
		image := child(change, "NewImage")
		if !image.IsObject() {
			return with(d.doc,
				contract("NewImage", "NewImage is %s: set the stream's view type to NEW_IMAGE or NEW_AND_OLD_IMAGES",
					typeName(image)))
		}
		d.data = image.Raw
	case "REMOVE":
		d.op = shard.Delete
	default:
		return with(d.doc, contract("eventName", "eventName %s is unknown: want INSERT, MODIFY or REMOVE",
			event.Quote(name)))
	}
	return s.finish(o, &d)
}

// streamID joins the values of the key attributes in the order of their names.
func streamID(keys gjson.Result) (string, *event.Fault) {
	if !keys.IsObject() {
		return "", contract("Keys", "Keys is %s: want the item's key attributes", typeName(keys))
	}
	var parts []part
	var fault *event.Fault
	keys.ForEach(func(name, value gjson.Result) bool {
		kind, v := single(value)
		if kind != "S" && kind != "N" && kind != "B" || v.Type != gjson.String {
			fault = contract("Keys", "key attribute %s is neither S, N nor B", event.Quote(name.Str))
			return false
		}
		var text string
		if text, fault = identity("Keys", v); fault != nil {
			return false
		}
		parts = append(parts, part{name.Str, text})
		return true
	})
	if fault != nil {
		return "", fault
	}
	return joinKey(parts), nil
}

// part is one attribute or column of a composite key.
type part struct{ name, value string }

// joinKey joins the values in the order of the names by |, with | and \ inside a value escaped by
// \, so that no two keys become one id.
func joinKey(parts []part) string {
	slices.SortStableFunc(parts, func(a, b part) int { return strings.Compare(a.name, b.name) })
	var id strings.Builder
	for i, p := range parts {
		if i+1 < len(parts) && parts[i+1].name == p.name {
			continue // given twice: the last counts
		}
		if id.Len() > 0 {
			id.WriteByte('|')
		}
		for j := range len(p.value) {
			if p.value[j] == '|' || p.value[j] == '\\' {
				id.WriteByte('\\')
			}
			id.WriteByte(p.value[j])
		}
	}
	return id.String()
}

// single is the type and value of an attribute value such as {"S":"text"}: the type is "" unless
// there is exactly one.
func single(v gjson.Result) (kind string, value gjson.Result) {
	if !v.IsObject() {
		return "", value
	}
	n := 0
	v.ForEach(func(name, inner gjson.Result) bool {
		n++
		kind, value = name.Str, inner
		return true
	})
	if n != 1 {
		return "", value
	}
	return kind, value
}

// document turns the image from DynamoDB's notation into plain JSON, then projects it.
func (s *stream) document(data string) ([]byte, *event.Fault) {
	root := gjson.Parse(data)
	if !root.IsObject() {
		return nil, contract("NewImage", "NewImage is %s", typeName(root))
	}
	plain, f := appendMembers(make([]byte, 0, len(data)), root)
	if f != nil {
		return nil, f
	}
	return s.projection.object(string(plain))
}

func appendMembers(out []byte, object gjson.Result) ([]byte, *event.Fault) {
	var fault *event.Fault
	out = append(out, '{')
	first := true
	object.ForEach(func(name, value gjson.Result) bool {
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(append(out, name.Raw...), ':')
		out, fault = appendPlain(out, value)
		return fault == nil
	})
	return append(out, '}'), fault
}

func appendElements(out []byte, list gjson.Result, element func([]byte, gjson.Result) ([]byte, *event.Fault)) ([]byte,
	*event.Fault,
) {
	var fault *event.Fault
	out = append(out, '[')
	first := true
	list.ForEach(func(_, value gjson.Result) bool {
		if !first {
			out = append(out, ',')
		}
		first = false
		out, fault = element(out, value)
		return fault == nil
	})
	return append(out, ']'), fault
}

// appendPlain appends one attribute value as plain JSON: numbers digit for digit, binary values as
// base64. The depth is bounded by event.MaxDepth.
func appendPlain(out []byte, v gjson.Result) ([]byte, *event.Fault) {
	kind, value := single(v)
	switch {
	case kind == "S" && value.Type == gjson.String, kind == "BOOL" && value.IsBool():
		return append(out, value.Raw...), nil
	case kind == "B":
		return appendBinary(out, value)
	case kind == "N":
		return appendNumber(out, value)
	case kind == "NULL":
		return append(out, "null"...), nil
	case kind == "M" && value.IsObject():
		return appendMembers(out, value)
	case kind == "L" && value.IsArray():
		return appendElements(out, value, appendPlain)
	case kind == "SS" && value.IsArray():
		return append(out, value.Raw...), nil
	case kind == "NS" && value.IsArray():
		return appendElements(out, value, appendNumber)
	case kind == "BS" && value.IsArray():
		return appendElements(out, value, appendBinary)
	}
	return out, contract("NewImage", "an attribute has a value of the unknown type %s", event.Quote(kind))
}

func appendBinary(out []byte, v gjson.Result) ([]byte, *event.Fault) {
	if _, err := base64.StdEncoding.DecodeString(v.Str); v.Type != gjson.String || err != nil {
		return out, contract("NewImage", "a binary attribute is not base64")
	}
	return append(out, v.Raw...), nil
}

func appendNumber(out []byte, v gjson.Result) ([]byte, *event.Fault) {
	if v.Type == gjson.String && v.Str != "" && (v.Str[0] == '-' || '0' <= v.Str[0] && v.Str[0] <= '9') &&
		gjson.Valid(v.Str) {
		return append(out, v.Str...), nil
	}
	return out, contract("NewImage", "a number attribute is not digits in text")
}
