package govuk

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// textOf is the text that a reader of HTML sees: without tags, scripts and styles, entities
// resolved, white space collapsed. Words of different blocks are kept apart, parts of a word in
// different inline elements are not.
func textOf(source string) string {
	if !strings.ContainsAny(source, "<&") {
		return collapse(source)
	}
	var out strings.Builder
	out.Grow(len(source) / 2)
	hidden := atom.Atom(0) // the element that is being left out
	for z := html.NewTokenizer(strings.NewReader(source)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken: // the end: reading from memory does not fail otherwise
			return collapse(out.String())
		case html.TextToken:
			if hidden == 0 {
				out.Write(z.Text())
			}
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			tag := atom.Lookup(name)
			switch {
			case hidden != 0:
				if kind == html.EndTagToken && tag == hidden {
					hidden = 0
				}
			case kind != html.EndTagToken && unseen[tag]: // a slash before > means nothing here
				hidden = tag
			}
			if !inline[tag] {
				out.WriteByte(' ')
			}
		}
	}
}

// unseen are elements whose content is not text. None of them nests in itself.
var unseen = map[atom.Atom]bool{atom.Script: true, atom.Style: true}

// inline are elements that do not part words.
var inline = map[atom.Atom]bool{
	atom.A: true, atom.Abbr: true, atom.B: true, atom.Bdi: true, atom.Bdo: true, atom.Cite: true, atom.Code: true,
	atom.Data: true,
	atom.Del:  true, atom.Dfn: true, atom.Em: true, atom.Font: true, atom.I: true, atom.Ins: true, atom.Kbd: true,
	atom.Mark: true,
	atom.Q:    true, atom.S: true, atom.Samp: true, atom.Small: true, atom.Span: true, atom.Strong: true,
	atom.Sub: true,
	atom.Sup: true, atom.Time: true, atom.U: true, atom.Var: true, atom.Wbr: true,
}

// collapse makes every run of white space, no-break spaces included, one space.
func collapse(s string) string {
	return strings.Join(strings.Fields(s), " ")
}
