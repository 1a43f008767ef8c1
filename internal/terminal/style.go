package terminal

import "strings"

// Style is how a text looks where the reader has colours: the mark at which it begins. Marks are
// control characters, which [Line] escapes in everybody else's text, so only [Printf] can write
// them. They take no column of a terminal.
type Style string

// The styles.
const (
	Bold   Style = "\x01"
	Red    Style = "\x02"
	Green  Style = "\x03"
	Yellow Style = "\x04"
)

// end is the mark at which a style ends.
const end = "\x0f"

const marks = string(Bold+Red+Green+Yellow) + end

// What a reader with colours gets in place of the marks, which is SGR, and what others get.
var (
	coloured = strings.NewReplacer(string(Bold), "\x1b[1m", string(Red), "\x1b[31m", string(Green), "\x1b[32m",
		string(Yellow), "\x1b[33m", end, "\x1b[0m")
	plain = strings.NewReplacer(string(Bold), "", string(Red), "", string(Green), "", string(Yellow), "", end, "")
)

// Styled is an argument of [Printf] in a style. Its text is escaped as every other one.
type Styled struct {
	Style Style
	Text  string
}

// String is the text without its style.
func (s Styled) String() string { return s.Text }

func (s Styled) marked() string { return string(s.Style) + Line(s.Text) + end }

// Styler is a writer that knows what to do with the styles of [Printf].
type Styler interface {
	// WriteStyled writes a text with marks.
	WriteStyled(text string) error
}

// Ended is the beginning of a text of [Printf], with an end of the style that it was cut off in.
func Ended(text string) string {
	if at := strings.LastIndexAny(text, marks); at >= 0 && text[at:at+1] != end {
		return text + end
	}
	return text
}
