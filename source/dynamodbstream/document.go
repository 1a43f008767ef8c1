// SPDX-License-Identifier: Apache-2.0

package dynamodbstream

import (
	"encoding/base64"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
)

// Document turns the image from DynamoDB's notation into plain JSON, then projects it.
func (s *format) Document(data string) ([]byte, *event.Invalid) {
	root := gjson.Parse(data)
	if !root.IsObject() {
		return nil, source.Invalid("NewImage", "NewImage is %s", source.TypeName(root))
	}
	document, bad := appendAll(make([]byte, 0, len(data)), root, plainAppender(maxLevels))
	if bad != nil {
		return nil, bad
	}
	return s.Rules.Document(string(document))
}

// appender appends one value as plain JSON.
type appender func([]byte, gjson.Result) ([]byte, *event.Invalid)

// appendAll appends an object or an array. It calls add for each value.
func appendAll(out []byte, v gjson.Result, add appender) (_ []byte, bad *event.Invalid) {
	out = source.AppendEach(out, v, func(out []byte, value gjson.Result) []byte {
		if bad == nil {
			out, bad = add(out, value)
		}
		return out
	})
	return out, bad
}

// maxLevels is how deep maps and lists may nest in DynamoDB. The time to read an image grows with
// the square of its levels, so a deeper image is refused.
const maxLevels = 32

// plainAppender returns an appender for an attribute value that has at most this many levels.
func plainAppender(levels int) appender {
	return func(out []byte, v gjson.Result) ([]byte, *event.Invalid) { return appendPlain(out, v, levels) }
}

// appendPlain appends one attribute value as plain JSON. Numbers keep all digits, and binary values
// are written in base64.
func appendPlain(out []byte, v gjson.Result, levels int) ([]byte, *event.Invalid) {
	kind, value := singleValue(v)
	switch {
	case kind == "S" && value.Type == gjson.String, kind == "BOOL" && value.IsBool():
		return append(out, value.Raw...), nil
	case kind == "B":
		return appendBinary(out, value)
	case kind == "N":
		return appendNumber(out, value)
	case kind == "NULL":
		return append(out, "null"...), nil
	case kind == "M" && value.IsObject(), kind == "L" && value.IsArray():
		if levels == 0 {
			return out, source.Invalid("NewImage", "maps and lists nest more than %d levels", maxLevels)
		}
		return appendAll(out, value, plainAppender(levels-1))
	case kind == "SS" && value.IsArray():
		return append(out, value.Raw...), nil
	case kind == "NS" && value.IsArray():
		return appendAll(out, value, appendNumber)
	case kind == "BS" && value.IsArray():
		return appendAll(out, value, appendBinary)
	}
	return out, source.Invalid("NewImage", "an attribute has a value of the unknown type %s", event.Quote(kind))
}

func appendBinary(out []byte, v gjson.Result) ([]byte, *event.Invalid) {
	if _, err := base64.StdEncoding.DecodeString(v.Str); v.Type != gjson.String || err != nil {
		return out, source.Invalid("NewImage", "a binary attribute is not base64")
	}
	return append(out, v.Raw...), nil
}

func appendNumber(out []byte, v gjson.Result) ([]byte, *event.Invalid) {
	if v.Type == gjson.String && v.Str != "" && (v.Str[0] == '-' || '0' <= v.Str[0] && v.Str[0] <= '9') &&
		gjson.Valid(v.Str) {
		return append(out, v.Str...), nil
	}
	return out, source.Invalid("NewImage", "a number attribute is not a text of digits")
}
