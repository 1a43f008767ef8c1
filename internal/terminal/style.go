// SPDX-License-Identifier: Apache-2.0

package terminal

import "strings"

// Style is a style of text, for example bold or red. The value of a Style is the mark with which
// the style begins. Marks are control characters. [Line] escapes control characters in all other
// text, so only [Printf] can write marks. A mark takes no column of a terminal.
type Style string

// The styles.
const (
	Bold   Style = "\x01"
	Red    Style = "\x02"
	Green  Style = "\x03"
	Yellow Style = "\x04"
)

// end is the mark with which a style ends.
const end = "\x0f"

const marks = string(Bold+Red+Green+Yellow) + end

// coloured replaces the marks by SGR escapes, and plain removes them.
var (
	coloured = strings.NewReplacer(string(Bold), "\x1b[1m", string(Red), "\x1b[31m", string(Green), "\x1b[32m",
		string(Yellow), "\x1b[33m", end, "\x1b[0m")
	plain = strings.NewReplacer(string(Bold), "", string(Red), "", string(Green), "", string(Yellow), "", end, "")
)

// Styled is an argument of [Printf] in a style. The text of a Styled is escaped like all other
// text.
type Styled struct {
	Style Style
	Text  string
}

// String returns the text without its style.
func (s Styled) String() string { return s.Text }

func (s Styled) marked() string { return string(s.Style) + Line(s.Text) + end }

// Styler is a writer that can show or remove the styles of [Printf].
type Styler interface {
	// WriteStyled writes a text with marks.
	WriteStyled(text string) error
}

// Ended ends the style of a text of [Printf] that was cut off inside the style.
func Ended(text string) string {
	if at := strings.LastIndexAny(text, marks); at >= 0 && text[at:at+1] != end {
		return text + end
	}
	return text
}
