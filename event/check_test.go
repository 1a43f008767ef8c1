// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/deadletter"
)

func TestCheckNamesTheByteWhereJSONBreaks(t *testing.T) {
	t.Parallel()
	tests := []struct{ body, want string }{
		{"", "empty"},
		{"\n", "empty"},
		{`{"a":tru}`, "error at byte 9 of 9"},
		{`{"a":"` + "\x01" + `"}`, "error at byte 7 of 9"},
		{"\"\xff\"", "UTF-8"},
		{strings.Repeat("[", event.MaxDepth+1) + strings.Repeat("]", event.MaxDepth+1), "more than 256 deep"},
		{strings.Repeat("[", 1<<20), "more than 256 deep"},
	}
	for _, tt := range tests {
		f := event.Check(tt.body)
		if f == nil || f.Reason != deadletter.Undecodable || !strings.Contains(f.Problem, tt.want) {
			t.Errorf("%.40q: got %+v, want undecodable with %q", tt.body, f, tt.want)
		}
	}
}

func TestCheckCountsBracketsOutsideOfTextOnly(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`"` + strings.Repeat(`{[\"`, 1000) + `"`,
		"[" + strings.Repeat("[],", 1000) + "1]",
		strings.Repeat("[", event.MaxDepth) + strings.Repeat("]", event.MaxDepth),
	} {
		if f := event.Check(body); f != nil {
			t.Errorf("%.40q: got %v, want nothing wrong", body, f)
		}
	}
}

// FuzzCheck compares Check with the JSON reader of the standard library. Unlike Check, that reader
// accepts broken UTF-8 and a depth of up to 10,000.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		"", " ", "{}", "01", "-", "-0", "1.", "1e", "1E+9", `"\u12G4"`, `"\x"`, "[1,]",
		`{"a"}`, "nul", "\ufeff1", "\"\xff\"", "1 2", "[[[[]]]]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if strings.Count(body, "[")+strings.Count(body, "{") > event.MaxDepth {
			t.Skip("may be too deep")
		}
		want := json.Valid([]byte(body)) && utf8.ValidString(body)
		got := event.Check(body)
		if (got == nil) != want {
			t.Fatalf("%q: got %v, the standard library says %t", body, got, want)
		}
	})
}

func TestQuoteKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"a\n", `"a\n"`},
		{strings.Repeat("a", 64), `"` + strings.Repeat("a", 64) + `"`},
		{strings.Repeat("a", 65), `"` + strings.Repeat("a", 64) + `"...`},
		{strings.Repeat("a", 63) + "é", `"` + strings.Repeat("a", 63) + `"...`},
		{strings.Repeat("a", 61) + "😀", `"` + strings.Repeat("a", 61) + `"...`},
	}
	for _, tt := range tests {
		if got := event.Quote(tt.text); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestInvalidSaysItsReasonFieldAndProblem(t *testing.T) {
	t.Parallel()
	f := &event.Invalid{Reason: deadletter.Contract, Field: "type", Problem: "type is missing"}
	if got, want := f.Error(), "contract: type: type is missing"; got != want || f.Transient() {
		t.Errorf("got %s, want %s, for good", got, want)
	}
	cause := errors.New("throttled")
	f = &event.Invalid{Reason: deadletter.Payload, Problem: "not now", Err: cause}
	if got, want := f.Error(), "payload: not now"; got != want || !f.Transient() || !errors.Is(f, cause) {
		t.Errorf("got %s, want %s, which may pass", got, want)
	}
}
