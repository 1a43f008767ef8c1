// SPDX-License-Identifier: Apache-2.0

package govuk

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// textOf returns the text that a reader of HTML sees. It removes tags, scripts and styles, resolves
// entities, and collapses white space. It puts a space between the texts of different blocks, but
// not between the texts of inline elements.
func textOf(source string) string {
	if !strings.ContainsAny(source, "<&") {
		return collapse(source)
	}
	var out strings.Builder
	out.Grow(len(source) / 2)
	hidden := atom.Atom(0) // the element whose content is skipped at the moment, or 0
	for z := html.NewTokenizer(strings.NewReader(source)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken: // the end of the text: reading from memory has no other error
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
			case kind != html.EndTagToken && unseen[tag]: // for such an element, a slash before > has no effect
				hidden = tag
			}
			if !inline[tag] {
				out.WriteByte(' ')
			}
		}
	}
}

// unseen lists the elements whose content is not text. An element of this list never contains
// itself.
var unseen = map[atom.Atom]bool{atom.Script: true, atom.Style: true}

// inline lists the elements that do not separate words.
var inline = map[atom.Atom]bool{
	atom.A: true, atom.Abbr: true, atom.B: true, atom.Bdi: true, atom.Bdo: true, atom.Cite: true, atom.Code: true,
	atom.Data: true,
	atom.Del:  true, atom.Dfn: true, atom.Em: true, atom.Font: true, atom.I: true, atom.Ins: true, atom.Kbd: true,
	atom.Mark: true,
	atom.Q:    true, atom.S: true, atom.Samp: true, atom.Small: true, atom.Span: true, atom.Strong: true,
	atom.Sub: true,
	atom.Sup: true, atom.Time: true, atom.U: true, atom.Var: true, atom.Wbr: true,
}

// collapse replaces each sequence of white space, including no-break spaces, with one space.
func collapse(s string) string {
	return strings.Join(strings.Fields(s), " ")
}
