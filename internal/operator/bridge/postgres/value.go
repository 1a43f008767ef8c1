// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
)

// encoder appends a value in PostgreSQL's text format to JSON. It never loses a digit. A text that
// does not fit becomes a JSON string, so the JSON is always valid.
type encoder func(dst, text []byte) []byte

// scalars are the encoders of the built-in types. All other types become JSON strings.
var scalars = map[uint32]encoder{
	pgtype.BoolOID: boolean,
	pgtype.Int2OID: number, pgtype.Int4OID: number, pgtype.Int8OID: number, pgtype.OIDOID: number,
	pgtype.Float4OID: number, pgtype.Float8OID: number, pgtype.NumericOID: number,
	pgtype.JSONOID: document, pgtype.JSONBOID: document,
	pgtype.ByteaOID:       binary,
	pgtype.TimestampOID:   instant,
	pgtype.TimestamptzOID: instant,
}

// elements returns the type of the elements if the built-in type is an array, or else 0.
var elements = func() func(oid uint32) uint32 {
	known := pgtype.NewMap()
	return func(oid uint32) uint32 {
		if t, ok := known.TypeForOID(oid); ok && oid != pgtype.BoxArrayOID { // boxes are separated by ;
			if array, ok := t.Codec.(*pgtype.ArrayCodec); ok {
				return array.ElementType.OID
			}
		}
		return 0
	}
}()

// encoderOf returns the encoder of a built-in type.
func encoderOf(oid uint32) encoder {
	if of := elements(oid); of != 0 {
		return arrayOf(encoderOf(of))
	}
	if e := scalars[oid]; e != nil {
		return e
	}
	return quoted
}

func boolean(dst, text []byte) []byte {
	switch string(text) {
	case "t":
		return append(dst, "true"...)
	case "f":
		return append(dst, "false"...)
	}
	return quoted(dst, text)
}

// number appends the digits as they are. NaN and Infinity become strings.
func number(dst, text []byte) []byte {
	if len(text) > 0 && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid(text) {
		return append(dst, text...)
	}
	return quoted(dst, text)
}

// document appends JSON.
func document(dst, text []byte) []byte {
	if !json.Valid(text) || !utf8.Valid(text) {
		return quoted(dst, text)
	}
	from := len(dst)
	return escapeNonCharacters(append(dst, text...), from)
}

// binary appends bytes in base64.
func binary(dst, text []byte) []byte {
	digits, ok := bytes.CutPrefix(text, []byte(`\x`))
	raw := make([]byte, hex.DecodedLen(len(digits)))
	if _, err := hex.Decode(raw, digits); !ok || err != nil {
		return quoted(dst, text)
	}
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, raw)
	return append(dst, '"')
}

// instant appends a time in the form of RFC 3339. The time zone of the session is UTC, and a time
// without a zone stays without one. "infinity" and years before Christ stay as PostgreSQL writes
// them.
func instant(dst, text []byte) []byte {
	s := string(text)
	if !strings.HasSuffix(s, " BC") {
		if day, rest, ok := strings.Cut(s, " "); ok {
			s = day + "T" + rest
		}
		if rest, ok := strings.CutSuffix(s, "+00"); ok {
			s = rest + "Z"
		}
	}
	return quoted(dst, []byte(s))
}

const hexDigits = "0123456789abcdef"

// quoted appends a JSON string. Bytes that are not UTF-8 become U+FFFD.
func quoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	from := len(dst)
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst, i = append(dst, '\\', c), i+1
		case c < ' ':
			dst, i = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15]), i+1
		case c < utf8.RuneSelf:
			dst, i = append(dst, c), i+1
		default:
			r, n := utf8.DecodeRune(text[i:])
			dst, i = utf8.AppendRune(dst, r), i+n
		}
	}
	return append(escapeNonCharacters(dst, from), '"')
}

// escapeNonCharacters escapes U+FFFE and U+FFFF in the JSON from an index on, because SQS refuses
// both. In JSON they can only be in strings.
func escapeNonCharacters(dst []byte, from int) []byte {
	if !bytes.Contains(dst[from:], []byte{0xEF, 0xBF, 0xBE}) && !bytes.Contains(dst[from:], []byte{0xEF, 0xBF, 0xBF}) {
		return dst
	}
	tail := strings.NewReplacer("\ufffe", `\ufffe`, "\uffff", `\uffff`).Replace(string(dst[from:]))
	return append(dst[:from], tail...)
}

// arrayOf returns the encoder of an array.
func arrayOf(element encoder) encoder {
	return func(dst, text []byte) []byte {
		from := len(dst)
		rest := text
		if len(rest) > 0 && rest[0] == '[' { // the bounds, such as [0:2]=
			if _, after, ok := bytes.Cut(rest, []byte("=")); ok {
				rest = after
			}
		}
		dst, rest, ok := appendArray(dst, rest, element, 0)
		if !ok || len(rest) > 0 {
			return quoted(dst[:from], text)
		}
		return dst
	}
}

// maxDimensions is PostgreSQL's limit.
const maxDimensions = 6

// appendArray appends the array at the beginning of text, and returns the text behind the array.
func appendArray(dst, text []byte, element encoder, depth int) (_, rest []byte, ok bool) {
	if len(text) < 2 || text[0] != '{' || depth > maxDimensions {
		return dst, text, false
	}
	dst, text = append(dst, '['), text[1:]
	if text[0] == '}' {
		return append(dst, ']'), text[1:], true
	}
	for {
		switch {
		case len(text) == 0:
			return dst, text, false
		case text[0] == '{':
			if dst, text, ok = appendArray(dst, text, element, depth+1); !ok {
				return dst, text, false
			}
		case text[0] == '"':
			var value []byte
			if value, text, ok = unquote(text[1:]); !ok {
				return dst, text, false
			}
			dst = element(dst, value)
		default:
			end := bytes.IndexAny(text, ",}")
			if end < 0 {
				return dst, text, false
			}
			if value := text[:end]; string(value) == "NULL" {
				dst = append(dst, "null"...)
			} else {
				dst = element(dst, value)
			}
			text = text[end:]
		}
		if len(text) == 0 {
			return dst, text, false
		}
		switch text[0] {
		case ',':
			dst, text = append(dst, ','), text[1:]
		case '}':
			return append(dst, ']'), text[1:], true
		default:
			return dst, text, false
		}
	}
}

// unquote reads a quoted element of an array, without its first quote.
func unquote(text []byte) (value, rest []byte, ok bool) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return value, text[i+1:], true
		case '\\':
			if i++; i == len(text) {
				return value, nil, false
			}
		}
		value = append(value, text[i])
	}
	return value, nil, false
}
