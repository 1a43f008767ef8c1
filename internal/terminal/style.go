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

// Part is a stretch of text in one style, 0 for none.
type Part struct {
	Style Style
	Text  string
}

// Split takes a text of [Printf] apart.
func Split(text string) []Part {
	var parts []Part
	for text != "" {
		before, rest, found := strings.Cut(text, begin)
		if before != "" {
			parts = append(parts, Part{Text: before})
		}
		if !found || rest == "" {
			break
		}
		inside, after, _ := strings.Cut(rest[1:], end)
		parts = append(parts, Part{Style(rest[0]), inside})
		text = after
	}
	return parts
}

// Join is the opposite of [Split].
func Join(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		if p.Style == 0 {
			b.WriteString(p.Text)
			continue
		}
		b.WriteString(begin + string(rune(p.Style)) + p.Text + end)
	}
	return b.String()
}

// Plain is a text of [Printf] without its styles.
func Plain(text string) string {
	if !strings.Contains(text, begin) {
		return text
	}
	var b strings.Builder
	for _, p := range Split(text) {
		b.WriteString(p.Text)
	}
	return b.String()
}

// colourful is a text of [Printf] with its styles as a terminal understands them.
func colourful(text string) string {
	var b strings.Builder
	for _, p := range Split(text) {
		if code := codes[p.Style]; code != "" {
			b.WriteString("\x1b[" + code + "m" + p.Text + "\x1b[0m")
			continue
		}
		b.WriteString(p.Text)
	}
	return b.String()
}
