// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/lullhq/lull/internal/terminal"
)

// look says how answers are printed. In a terminal they fit its width and have colours. In a pipe
// they are plain and complete.
type look struct {
	colour string // never, auto or always
	wide   bool
}

const (
	colourFlag = "color"
	wideFlag   = "wide"
)

// The values of --color.
const (
	colourAuto   = "auto"
	colourAlways = "always"
	colourNever  = "never"
)

func (l *look) flags() []option {
	return []option{
		flag(colourFlag, &l.colour, "colours `WHEN`: never, auto (in a terminal, without NO_COLOR) or always"),
		flag(wideFlag, &l.wide, "do not cut the cells of a table that is wider than the terminal"),
	}
}

// looks reports whether a flag is one of look's, which every command takes.
func looks(f *pflag.Flag) bool { return f.Name == colourFlag || f.Name == wideFlag }

// check refuses an unknown value of --color, and applies a known one.
func (l *look) check(writers ...*terminal.Writer) error {
	switch l.colour {
	case colourAuto, colourAlways, colourNever:
	default:
		return usagef("--color %s: want never, auto or always", l.colour)
	}
	for _, w := range writers {
		w.Colour(l.colour == colourAlways || l.colour == colourAuto && welcome(w))
	}
	return nil
}

// welcome reports whether to print colours: in a terminal that shows them, unless the user has
// disabled them (https://no-color.org).
func welcome(w io.Writer) bool {
	f, ok := tty(w)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && showColours(f)
}

// width is how wide a table may be, 0 for no limit.
func (l *look) width(w io.Writer) int {
	f, ok := tty(w)
	if !ok || l.wide {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// bad colours a text that a person has to look at.
func bad(format string, args ...any) terminal.Styled {
	return terminal.Styled{Style: terminal.Red, Text: fmt.Sprintf(format, args...)}
}

// tty returns the terminal behind a reader or writer, if there is one.
func tty(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	if w, isWriter := stream.(io.Writer); isWriter && !ok {
		f, ok = terminal.File(w)
	}
	return f, ok && term.IsTerminal(int(f.Fd()))
}
