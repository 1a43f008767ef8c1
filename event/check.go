// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/seam/deadletter"
)

// MaxDepth is how deep the objects and arrays of a body may nest. JSON readers recurse: without a
// limit, a megabyte of brackets would need hundreds of megabytes of stack. Search engines allow
// documents far less depth.
const MaxDepth = 256

// Check returns nil if a text can be a body, and otherwise the reason why it cannot. A body is
// UTF-8 text with one JSON value that nests at most MaxDepth deep.
func Check(text string) *Invalid {
	switch {
	case strings.TrimLeft(text, whitespace) == "":
		return undecodable("the body is empty: send one event as JSON")
	case !utf8.ValidString(text):
		return undecodable("the body is not valid UTF-8: send JSON in UTF-8")
	case tooDeep(text):
		return undecodable("the body nests objects or arrays more than %d deep", MaxDepth)
	case !gjson.Valid(text):
		return undecodable("the body is not JSON%s: send one event as JSON", syntaxErrorAt(text))
	}
	return nil
}

// whitespace lists the characters that JSON allows around a value.
const whitespace = " \t\r\n"

// tooDeep reports whether a text nests deeper than MaxDepth. It does not recurse, because it
// protects code that recurses. Most bodies have fewer brackets than the limit, and counting
// brackets is fast.
func tooDeep(text string) bool {
	if strings.Count(text, "{")+strings.Count(text, "[") <= MaxDepth {
		return false
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return false
}

// syntaxErrorAt says at which byte the JSON is wrong. It is called only for broken bodies, so it
// may use a slower reader. It uses only the offset from that reader, because the reader's error
// quotes the body.
func syntaxErrorAt(text string) string {
	var syntax *json.SyntaxError
	if err := json.Unmarshal([]byte(text), new(json.RawMessage)); errors.As(err, &syntax) {
		return fmt.Sprintf(" (error at byte %d of %d)", syntax.Offset, len(text))
	}
	return ""
}

func undecodable(format string, args ...any) *Invalid {
	return &Invalid{Reason: deadletter.Undecodable, Problem: fmt.Sprintf(format, args...)}
}

// Quote quotes at most 64 bytes of a field, such as an id, for an error message.
func Quote(s string) string {
	const most = 64
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q...", strings.ToValidUTF8(s[:most], "")) // the last character may be cut in half
}
