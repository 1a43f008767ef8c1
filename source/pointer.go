// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
)

// Pointer is a parsed JSON pointer (RFC 6901). An empty pointer names the whole value.
type Pointer struct {
	Text   string
	Tokens []string
}

var unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")

// ParsePointer reads a JSON pointer.
func ParsePointer(text string) (Pointer, error) {
	p := Pointer{Text: text}
	if text == "" {
		return p, nil
	}
	if text[0] != '/' {
		return p, fmt.Errorf("JSON pointer %q does not begin with /", text)
	}
	if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(text), "~") {
		return p, fmt.Errorf("JSON pointer %q: ~ must be written ~0", text)
	}
	for token := range strings.SplitSeq(text[1:], "/") {
		p.Tokens = append(p.Tokens, unescapeToken.Replace(token))
	}
	return p, nil
}

// In returns the value in v that the pointer names. If v has no such value, In returns the zero
// Result, which is null and does not exist.
func (p Pointer) In(v gjson.Result) gjson.Result { return event.Child(v, p.Tokens...) }
