package source

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// pointer is a JSON pointer (RFC 6901) taken apart. The empty one is the whole value.
type pointer struct {
	text   string
	tokens []string
}

var unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")

func newPointer(text string) (pointer, error) {
	p := pointer{text: text}
	if text == "" {
		return p, nil
	}
	if text[0] != '/' {
		return p, fmt.Errorf("JSON pointer %q does not begin with /", text)
	}
	for token := range strings.SplitSeq(text[1:], "/") {
		for i := range len(token) {
			if token[i] == '~' && (i+1 == len(token) || token[i+1] != '0' && token[i+1] != '1') {
				return p, fmt.Errorf("JSON pointer %q: ~ must be written ~0", text)
			}
		}
		p.tokens = append(p.tokens, unescapeToken.Replace(token))
	}
	return p, nil
}

// in is the value that the pointer names, or the zero Result, which is null and does not exist.
func (p pointer) in(v gjson.Result) gjson.Result {
	for _, token := range p.tokens {
		v = child(v, token)
	}
	return v
}

// child is a member of an object, the last of that name, or an element of an array.
func child(v gjson.Result, token string) gjson.Result {
	var found gjson.Result
	switch {
	case v.IsObject():
		v.ForEach(func(name, value gjson.Result) bool {
			if name.Str == token {
				found = value
			}
			return true
		})
	case v.IsArray():
		want, ok := arrayIndex(token)
		if !ok {
			break
		}
		n := 0
		v.ForEach(func(_, value gjson.Result) bool {
			if n == want {
				found = value
			}
			n++
			return n <= want
		})
	}
	return found
}

// arrayIndex reads a token as an array index: digits without a leading zero.
func arrayIndex(token string) (int, bool) {
	if !digitsOnly(token) || len(token) > 1 && token[0] == '0' {
		return 0, false
	}
	n, err := strconv.Atoi(token)
	return n, err == nil
}
