package terminal

import "strings"

// Style is how a text looks where the reader has colours.
type Style byte

// The styles.
const (
	Bold   Style = 'b'
	Red    Style = 'r'
	Green  Style = 'g'
	Yellow Style = 'y'
)

// codes are the parameters of SGR, the sequence that terminals know.
var codes = map[Style]string{Bold: "1", Red: "31", Green: "32", Yellow: "33"}

// Styled is an argument of [Printf] in a style. Its text is escaped as every other one.
type Styled struct {
	Style Style
	Text  string
}

// String is the text without its style.
func (s Styled) String() string { return s.Text }

// A styled text stands between two marks. They are control characters, which [Line] escapes in
// everybody else's text, so only [Printf] can write them.
const (
	begin = "\x0e" // a byte of Style follows
	end   = "\x0f"
	marks = begin + end
)

func (s Styled) marked() string { return begin + string(rune(s.Style)) + Line(s.Text) + end }

// Styler is a writer that knows what to do with the styles of [Printf].
type Styler interface {
	// WriteStyled writes a text with marks, which [Split] reads.
	WriteStyled(text string) error
}

// Split takes a text of [Printf] apart, into stretches of one style each, 0 for none.
func Split(text string) []Styled {
	var parts []Styled
	for text != "" {
		before, rest, found := strings.Cut(text, begin)
		if before != "" {
			parts = append(parts, Styled{Text: before})
		}
		if !found || rest == "" {
			break
		}
		inside, after, _ := strings.Cut(rest[1:], end)
		parts = append(parts, Styled{Style(rest[0]), inside})
		text = after
	}
	return parts
}

// Join is the opposite of [Split].
func Join(parts []Styled) string {
	var b strings.Builder
	for _, p := range parts {
		if p.Style != 0 {
			p.Text = begin + string(rune(p.Style)) + p.Text + end
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// Plain is a text of [Printf] without its styles.
func Plain(text string) string { return shown(text, nil) }

// shown is a text of [Printf] with those styles that have a code.
func shown(text string, codes map[Style]string) string {
	var b strings.Builder
	for _, p := range Split(text) {
		if code := codes[p.Style]; code != "" {
			p.Text = "\x1b[" + code + "m" + p.Text + "\x1b[0m"
		}
		b.WriteString(p.Text)
	}
	return b.String()
}
