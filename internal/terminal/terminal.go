// SPDX-License-Identifier: Apache-2.0

// Package terminal prints text that a sender may have chosen: ids, versions, attributes, bodies,
// and errors that quote them. Control characters could change a terminal or forge lines of a log.
// So each character that [shard.Control] names is printed as an escape such as \u001b.
//
// It promises:
//
//   - [Writer] escapes every such character except newline and tab. The escapes are those of JSON,
//     so JSON with such a character in a text keeps its meaning. A byte that is not UTF-8, which
//     JSON cannot contain, is printed as \xff.
//   - The output of [Line] and [Printf] stays on its line and in its column.
//   - A style is only shown if [Printf] was given one and [Writer.Colour] allows it.
package terminal

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/shard"
)

// Line escapes every control character of a text, including newline and tab, and every byte that is
// not UTF-8.
func Line(s string) string {
	if clean(s, "") == len(s) {
		return s
	}
	return string(escape(s, ""))
}

// Printf is fmt.Fprintf with each argument escaped by [Line]. The format may contain newlines and
// tabs, and [Styled] arguments may have a style. Printf ignores errors of w, because the reader may
// be gone.
func Printf(w io.Writer, format string, args ...any) {
	safe := make([]any, len(args))
	for i, a := range args {
		safe[i] = argument(a)
	}
	text := fmt.Sprintf(format, safe...)
	if s, ok := w.(Styler); ok {
		_ = s.WriteStyled(text)
		return
	}
	_, _ = io.WriteString(w, plain.Replace(text))
}

func argument(a any) any {
	switch a := a.(type) {
	case Styled:
		return a.marked()
	case error:
		return Line(a.Error())
	case fmt.Stringer:
		return Line(a.String())
	}
	switch v := reflect.ValueOf(a); v.Kind() {
	case reflect.String:
		return Line(v.String())
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct, reflect.Pointer:
		return nested{a}
	}
	return a
}

// nested is a value that may contain texts. The formatted text of a nested value is escaped.
type nested struct{ value any }

// Format implements fmt.Formatter.
func (n nested) Format(f fmt.State, verb rune) {
	_, _ = io.WriteString(f, Line(fmt.Sprintf(fmt.FormatString(f, verb), n.value)))
}

// ours are the control characters that a Writer does not escape.
const ours = "\n\t"

// clean returns how many bytes at the beginning of s need no escape.
func clean(s, keep string) int {
	for i, r := range s {
		if shard.Control(r) && !strings.ContainsRune(keep, r) || r == utf8.RuneError {
			return i
		}
	}
	return len(s)
}

// escape escapes the control characters of a text, except those in keep.
func escape(s, keep string) []byte {
	var dst []byte
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			dst = fmt.Appendf(dst, `\x%02x`, s[i])
		case shard.Control(r) && !strings.ContainsRune(keep, r):
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// Writer escapes what is written through it. A Writer is safe for concurrent use if the writer
// behind it is.
type Writer struct {
	to     io.Writer
	colour bool // whether styles are shown

	mu   sync.Mutex
	rest string // the first bytes of a character that is not complete yet
}

// NewWriter returns a writer to out, or out itself if it already escapes.
func NewWriter(out io.Writer) *Writer {
	if w, ok := out.(*Writer); ok {
		return w
	}
	return &Writer{to: out}
}

// Colour says whether the writer shows styles or removes them. Call it before the first write.
func (w *Writer) Colour(shown bool) { w.colour = shown }

// WriteStyled writes a text of [Printf]. WriteStyled keeps the styles of the text, and escapes all
// other control characters as [Writer.Write] does.
func (w *Writer) WriteStyled(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	text = string(escape(w.rest, "")) + string(escape(text, ours+marks))
	w.rest = ""
	shown := plain
	if w.colour {
		shown = coloured
	}
	_, err := io.WriteString(w.to, shown.Replace(text))
	return err
}

// Write escapes p and writes it in one call. A character may be split between several calls.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.rest + string(p)
	whole := len(text)
	for i := range min(utf8.UTFMax-1, len(text)) {
		if at := len(text) - 1 - i; utf8.RuneStart(text[at]) && !utf8.FullRuneInString(text[at:]) {
			whole = at
		}
	}
	w.rest = text[whole:]
	if whole == 0 {
		return len(p), nil
	}
	if _, err := w.to.Write(escape(text[:whole], ours)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// File returns the file that a writer writes to, if it writes to a file.
func File(w io.Writer) (*os.File, bool) {
	if through, ok := w.(*Writer); ok {
		w = through.to
	}
	f, ok := w.(*os.File)
	return f, ok
}
