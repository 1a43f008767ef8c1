// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// A chunk may end within the end of a line, and a byte order mark may precede the line. A line of
// MaxLine bytes is kept together with these three bytes. With one byte more, the line is skipped
// before its end is known.
func TestALineOfTheGreatestLengthMayEndInTheNextChunk(t *testing.T) {
	t.Parallel()
	line := `{"a":"` + strings.Repeat("x", wide.MaxLine-8) + `"}`
	for name, tt := range map[string]struct {
		ahead, behind string // text before and after the line, in its chunk
		taken         bool
	}{
		"a carriage return":                       {"", "\r", true},
		"a byte order mark":                       {string(bom), "", true},
		"a byte order mark and a carriage return": {string(bom), "\r", true},
		"four spaces":                             {"", "    ", true},
		"five spaces":                             {"", "     ", false},
	} {
		whole := tt.ahead + line + tt.behind
		before := strings.Repeat(" ", chunk-len(whole)-1) + "\n"
		var got []Line
		p, err := Read(strings.NewReader(before+whole+"\n{}\n"), Progress{}, wide, collect(&got))
		want := []Line{{3, int64(len(before) + len(whole) + 1), "{}"}}
		if tt.taken {
			want = slices.Insert(want, 0, Line{2, int64(len(before) + len(tt.ahead)), line})
		}
		if err != nil || (p.Faults == 0) != tt.taken || !slices.Equal(got, want) {
			t.Errorf("%s: %d faults, error %v, %d lines: want the line of %d bytes: %t, and the line after it", name, p.Faults, err,
				len(got), len(line), tt.taken)
		}
	}
}

func TestTheTextMayBeAsLongAsItsLimit(t *testing.T) {
	t.Parallel()
	text := "{}\n{}\n"
	for limit, fits := range map[int64]bool{int64(len(text)): true, int64(len(text)) - 1: false} {
		l := wide
		l.MaxText = limit
		_, err := Read(strings.NewReader(text), Progress{}, l, collect(new([]Line)))
		if errors.Is(err, errTooMuch) == fits {
			t.Errorf("%d bytes with a limit of %d: error %v, want the text to fit: %t", len(text), limit, err, fits)
		}
	}
}

func TestSoManyFaultsAreNamed(t *testing.T) {
	t.Parallel()
	p, err := Read(strings.NewReader(strings.Repeat("[]\n", maxFirst+3)), Progress{}, wide, collect(new([]Line)))
	if err != nil || p.Faults != maxFirst+3 || len(p.First) != maxFirst {
		t.Errorf("%d faults, %d of them named, error %v: want %d and %d", p.Faults, len(p.First), err, maxFirst+3, maxFirst)
	}
}
