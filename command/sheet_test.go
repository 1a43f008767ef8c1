// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/lullhq/lull/internal/terminal"
)

// laidOut is what a sheet of a width makes of an answer, with colours or without.
func laidOut(t *testing.T, width int, colour bool, f func(w io.Writer)) string {
	t.Helper()
	var out bytes.Buffer
	w := terminal.NewWriter(&out)
	w.Colour(colour)
	s := newSheet(w, width)
	f(s)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Without colours and cuts a sheet is what the standard library makes of the same lines.
func TestSheetLaysOutAsTabwriterDoes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "\n", "a\n", "a", "a\tb\nccc\td\n", "a\t\tb\n\tcc\t\n", "x\n\na\tb\tc\nlonger\tb\nlongest\tbb\tc\nno tabs\ny\tz\n",
		"  one\t2\n  three\t4\tfive\n\n  s\tt\n", "ID\tNAME\n",
	} {
		var want bytes.Buffer
		tab := tabwriter.NewWriter(&want, 0, 4, 2, ' ', 0)
		fmt.Fprint(tab, text)
		if err := tab.Flush(); err != nil {
			t.Fatal(err)
		}
		got := laidOut(t, 10, false, func(w io.Writer) { fmt.Fprint(w, text) })
		if strings.TrimSuffix(got, "\n") != strings.TrimSuffix(want.String(), "\n") {
			t.Errorf("%q: got\n%swant\n%s", text, got, want.String())
		}
	}
}

func TestSheetCutsOnlyWhatMayBeCut(t *testing.T) {
	t.Parallel()
	show := func(w io.Writer) {
		fmt.Fprint(w, "a sentence that is longer than the terminal is not a part of the table\n\n")
		header(w, "ID", "~DIED", "REASON", "~DETAIL")
		terminal.Printf(w, "%s\t%s\t%s\t%s\n", "0123456789abcdef", "2026-11-20T16:00:00Z", "version_invalid", "the version is not a number")
		terminal.Printf(w, "%s\t%s\t%s\t%s\n", "0123456789abcde0", "2026-11-20T16:00:00Z", "rejected", "東京東京東京東京東京東京東京東京")
		fmt.Fprint(w, "\n2 dead letters in a line that is longer than the terminal, too, and stays as it is\n")
	}
	whole := laidOut(t, 0, false, show)
	for width, want := range map[int][]string{
		0:    {"16:00:00Z  version_invalid  the version is not a number\n", "東京東京東京東京東京東京東京東京\n"},
		1000: {"16:00:00Z  version_invalid  the version is not a number\n"},
		80:   {"0123456789abcdef  2026-11-20T16:00:00Z  version_invalid  the version is not a n…\n"},
		64:   {"0123456789abcdef  2026-11-20T1…  version_invalid  the version i…\n", "rejected         東京東京東京…\n"},
		10:   {"0123456789abcdef  2026-11…  version_invalid  the ver…\n"},
	} {
		got := laidOut(t, width, false, show)
		for _, line := range want {
			if !strings.Contains(got, line) {
				t.Errorf("width %d: want %q in\n%s", width, line, got)
			}
		}
		if first, _, _ := strings.Cut(whole, "\n"); !strings.HasPrefix(got, first+"\n") {
			t.Errorf("width %d: the sentence changed:\n%s", width, got)
		}
		_, table, _ := strings.Cut(got, "\n\n")
		table, _, _ = strings.Cut(table, "\n\n")
		for line := range strings.Lines(table) {
			if n := breadth(strings.TrimSuffix(line, "\n")); width >= 64 && n > width {
				t.Errorf("width %d: a line is %d wide: %q", width, n, line)
			}
		}
	}
}

// ourColours are the sequences that this program may write.
var ourColours = regexp.MustCompile(`\x1b\[(0|1|31|32|33)m`)

func TestColoursAreOursAlone(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b[31mred\x02\x0f\u202e\n\ttext"
	show := func(w io.Writer) {
		header(w, "ID", "~DETAIL")
		terminal.Printf(w, "%s\t%v\n", bad("%s", hostile), []string{hostile})
		terminal.Printf(w, "%v\t%s\n", map[string]any{hostile: hostile}, fmt.Errorf("%s", hostile))
		fmt.Fprint(w, "\x02", hostile, "\n")
	}
	plain, coloured := laidOut(t, 0, false, show), laidOut(t, 0, true, show)
	if strings.Contains(plain, "\x1b") || strings.ContainsAny(plain, "\x02\x0f") {
		t.Errorf("without colours: got %q", plain)
	}
	if got := ourColours.ReplaceAllString(coloured, ""); got != plain {
		t.Errorf("with colours: got %q, want %q and colours", got, plain)
	}
	if !strings.Contains(coloured, "\x1b[1mID\x1b[0m") || !strings.Contains(coloured, `[31m\u001b[31mred\u0002`) {
		t.Errorf("with colours: got %q", coloured)
	}
	cut := laidOut(t, 10, true, func(w io.Writer) {
		header(w, "KEY", "~LAST ERROR")
		terminal.Printf(w, "%s\t%s\n", "content#a", "東京東京東京")
	})
	if want := "\x1b[1mKEY\x1b[0m        \x1b[1mLAST ER\x1b[0m…\ncontent#a  東京東…\n"; cut != want {
		t.Errorf("cut: got %q, want %q", cut, want)
	}
	if n := len(ourColours.FindAllString(coloured, -1)); n != 6 {
		t.Errorf("got %d sequences, want two for each of the header's cells and the style: %q", n, coloured)
	}
}
