// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/lullhq/lull/internal/terminal"
)

// sheet prints an answer as tables. Lines with tabs between their cells become columns: each column
// is as wide as its widest cell in a row of such lines. The last cell of a line is not padded.
type sheet struct {
	to    *terminal.Writer
	width int // the width of the terminal; 0 if nothing is cut

	text   strings.Builder
	plain  *terminal.Writer // writes to text what is not printed with terminal.Printf
	tables map[int][]bool   // for the line number of each header: which of its columns may be cut
	body   string           // text below the tables, printed unchanged
}

func newSheet(to *terminal.Writer, width int) *sheet {
	s := &sheet{to: to, width: width, tables: map[int][]bool{}}
	s.plain = terminal.NewWriter(&s.text)
	return s
}

func (s *sheet) Write(p []byte) (int, error) { return s.plain.Write(p) }

// WriteStyled implements terminal.Styler.
func (s *sheet) WriteStyled(text string) error {
	_, err := s.text.WriteString(text)
	return err
}

// header begins a table. A column whose name begins with ~ may be cut if the terminal is too
// narrow. Ids, keys and reasons are never cut, because people copy them.
func header(w io.Writer, names ...string) {
	cut := make([]bool, len(names))
	for i, name := range names {
		var bare string
		bare, cut[i] = strings.CutPrefix(name, "~")
		if i > 0 {
			_, _ = io.WriteString(w, "\t") // a reader that has gone is not an error here
		}
		terminal.Printf(w, "%s", terminal.Styled{Style: terminal.Bold, Text: bare})
	}
	if s, ok := w.(*sheet); ok {
		s.tables[strings.Count(s.text.String(), "\n")] = cut
	}
	_, _ = io.WriteString(w, "\n")
}

// below adds a text after the tables of an answer. A tab in it does not begin a column.
func below(w io.Writer, text string) {
	if s, ok := w.(*sheet); ok {
		s.body = "\n" + text + "\n"
	}
}

// gap is the number of spaces between two columns.
const gap = 2

// Flush writes what was printed.
func (s *sheet) Flush() error {
	var lines [][]string
	for line := range strings.Lines(s.text.String()) {
		lines = append(lines, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	for at, cut := range s.tables {
		s.fit(lines[at:], cut)
	}
	pad(lines)
	var out strings.Builder
	for _, cells := range lines {
		out.WriteString(strings.Join(cells, "") + "\n")
	}
	if err := s.to.WriteStyled(out.String()); err != nil || s.body == "" {
		return err
	}
	_, err := io.WriteString(s.to, s.body)
	return err
}

// fit cuts cells of the table that begins with the first line, until the table is as wide as the
// terminal. A part of each column stays.
func (s *sheet) fit(lines [][]string, cut []bool) {
	const least = 8
	if n := slices.IndexFunc(lines, func(cells []string) bool { return len(cells) != len(cut) }); n >= 0 {
		lines = lines[:n]
	}
	widths := make([]int, len(cut))
	for _, cells := range lines {
		for i, cell := range cells {
			widths[i] = max(widths[i], breadth(cell))
		}
	}
	excess := gap*(len(cut)-1) - s.width
	for _, w := range widths {
		excess += w
	}
	for excess > 0 && s.width > 0 {
		widest := -1
		for i, w := range widths {
			if cut[i] && w > least && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
		excess--
	}
	for _, cells := range lines {
		for i := range cells {
			if cut[i] {
				cells[i] = shortened(cells[i], widths[i])
			}
		}
	}
}

// pad fills the cells of each column to one width.
func pad(lines [][]string) {
	for column, more := 0, true; more; column++ {
		more = false
		for from := 0; from < len(lines); from++ {
			to, width := from, 0
			for ; to < len(lines) && len(lines[to]) > column+1; to++ {
				width = max(width, breadth(lines[to][column]))
			}
			for _, cells := range lines[from:to] {
				cells[column] += strings.Repeat(" ", width+gap-breadth(cells[column]))
			}
			more = more || to > from
			from = max(from, to)
		}
	}
}

// breadth is how many columns of a terminal a cell takes.
func breadth(cell string) int { return uniseg.StringWidth(cell) }

// shortened cuts a cell to a width. An ellipsis shows that the cell was cut.
func shortened(cell string, width int) string {
	if breadth(cell) <= width {
		return cell
	}
	kept, left := "", width-1
	for g := uniseg.NewGraphemes(cell); g.Next() && g.Width() <= left; left -= g.Width() {
		kept += g.Str()
	}
	return terminal.Ended(kept) + "…"
}
