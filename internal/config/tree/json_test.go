// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestJSONKeepsOrderLinesAndDigits(t *testing.T) {
	t.Parallel()
	got,
		err := ParseJSON(
		[]byte("{\"b\": 1.50,\n \"a\": [true, null,\n  \"x\\ny\"],\n\"a\":\n123456789012345678901234567890}"))
	if err != nil {
		t.Fatal(err)
	}
	want := Node{Kind: Map, Line: 1, Fields: []Field{
		{Key: "b", Line: 1, Value: Node{Kind: Number, Line: 1, Text: "1.50"}},
		{Key: "a", Line: 2, Value: Node{Kind: List, Line: 2, Items: []Node{
			{Kind: Bool, Line: 2, Text: "true"}, {Kind: Null, Line: 2}, {Kind: String, Line: 3, Text: "x\ny"},
		}}},
		{Key: "a", Line: 4, Value: Node{Kind: Number, Line: 5, Text: "123456789012345678901234567890"}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestJSONThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		line int
		want error // nil for the parser's own words
	}{
		{"", 1, errUnfinished},
		{"{\n\"a\": [1,\n", 2, errUnfinished},
		{"{}\n{}", 2, errTrailing},
		{"{} x", 1, errTrailing},
		{"{\n'a': 1}", 2, nil},
		{"[1,,2]", 1, nil},
		{strings.Repeat("[", MaxDepth+1), 1, ErrTooDeep},
		{strings.Repeat(" ", MaxBytes+1), 1, ErrTooLarge},
	} {
		_, err := ParseJSON([]byte(tt.text))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Line != tt.line || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%.20q: got %v, want line %d: %v", tt.text, err, tt.line, tt.want)
		}
	}
	if _, err := ParseJSON([]byte(strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth))); err != nil {
		t.Errorf("just deep enough: got %v", err)
	}
}

func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	if got, err := read(strings.NewReader(strings.Repeat("x", MaxBytes))); err != nil || len(got) != MaxBytes {
		t.Errorf("got %d bytes and %v, want all of them", len(got), err)
	}
	if _, err := read(strings.NewReader(strings.Repeat("x", MaxBytes+1))); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want it refused", err)
	}
	if _, err := read(endless{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("endless: got %v, want it refused", err)
	}
	if _, err := read(broken{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("broken: got %v, want the reader's error", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// FuzzJSON checks that ParseJSON accepts exactly the texts that the standard library accepts.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a": [1, null, "x"]}`, `[`, `{"a" 1}`, `1 2`, `{"a":1,}`, "\xff",
		`"\ud800"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := ParseJSON(text)
		if valid := json.Valid(text); err == nil && !valid {
			t.Errorf("got no error for %q, which is not JSON", text)
		} else if err != nil && valid && !errors.Is(err, ErrTooDeep) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v for %q, which is JSON", err, text)
		}
	})
}
