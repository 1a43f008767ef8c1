// SPDX-License-Identifier: Apache-2.0

package terminal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

func TestLineEscapesEveryControlCharacter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                             "",
		"Zürich 東京 \u200d":             "Zürich 東京 \u200d", // many scripts need the joiner character
		"a\nb\tc\rd":                   `a\u000ab\u0009c\u000dd`,
		"\x1b[2J\x00\x7f\u009b":        `\u001b[2J\u0000\u007f\u009b`,
		"\u202ea\u2066b\u200fc\u2028d": `\u202ea\u2066b\u200fc\u2028d`,
		"a\xffb\xc3":                   `a\xffb\xc3`,
		"\ufffd":                       "\ufffd",
	} {
		if got := terminal.Line(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestPrintfLeavesEachTextOnItsLine(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	terminal.Printf(&b, "%s\t%s\t%v\t%d\n", shard.DocID("a\tb"), errors.New("c\nd"), shard.ClassInt, 7)
	if got, want := b.String(), "a\\u0009b\tc\\u000ad\tint\t7\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzWriter: for any pieces of input, the output has no control character from the input.
func FuzzWriter(f *testing.F) {
	f.Add("a\x1b[31m\u009bZürich\n", uint8(3))
	f.Add("\xe2\x80\xae\xe2\x80", uint8(1))
	f.Add(`{"a":"`+"\u0085"+`"}`, uint8(2))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		var out bytes.Buffer
		w := terminal.NewWriter(&out)
		step := int(size%7) + 1
		for rest := text; rest != ""; rest = rest[min(step, len(rest)):] {
			n := min(step, len(rest))
			if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatalf("wrote %d, %v, want %d", got, err, n)
			}
		}
		for _, r := range out.String() {
			if shard.Control(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q: %q holds %U", text, out.String(), r)
			}
		}
		var before, after any
		if utf8.ValidString(text) && json.Unmarshal([]byte(text), &before) == nil && !strings.ContainsAny(text, "\r") {
			if err := json.Unmarshal(out.Bytes(), &after); err != nil {
				t.Fatalf("%q: the JSON became %q: %v", text, out.String(), err)
			}
		}
	})
}
