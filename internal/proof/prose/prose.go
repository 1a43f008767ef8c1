// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Finding is one place in a file that breaks a rule.
type Finding struct {
	File string
	Line int
	Text string
}

// String formats a finding like a compiler error, so that editors can jump to the place.
func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

// checker collects the findings of one file.
type checker struct {
	file  string
	found []Finding
}

func (c *checker) find(line int, format string, args ...any) {
	c.found = append(c.found, Finding{c.file, line, fmt.Sprintf(format, args...)})
}

var (
	span      = regexp.MustCompile("`[^`]*`")
	target    = regexp.MustCompile(`\]\([^)]*\)`)
	listItem  = regexp.MustCompile(`^\s*(?:[-*]|\d+\.) `)
	endOfIt   = regexp.MustCompile(`[.!?:;]["')*_\]]*(?:\s|$)`)
	directive = regexp.MustCompile(`^(?:/\*|//(?:\t|[a-z]+:|export |line ))`) // or the indented line of an example
	names     = regexp.MustCompile(`^[Ll]etters? |\[[\w.]+\]`)                // the names at the beginning of a comment
)

// words checks a text for private words.
func (c *checker) words(line int, text string) { c.avoid(words, line, text) }

// avoid checks a text for the words of a table.
func (c *checker) avoid(words []word, line int, text string) {
	text = names.ReplaceAllString(span.ReplaceAllString(target.ReplaceAllString(text, "]"), "`code`"), "_ ")
	text = allowed.ReplaceAllString(strings.Join(strings.Fields(text), " "), "_")
	for _, w := range words {
		if hit := w.pattern.FindString(text); hit != "" {
			c.find(line, "%q: write %s", hit, w.instead)
		}
	}
}

// sentences checks that each sentence of a paragraph is short.
func (c *checker) sentences(line int, text string) {
	text = span.ReplaceAllString(target.ReplaceAllString(text, "]"), "code")
	for _, s := range endOfIt.Split(text, -1) {
		fields := strings.Fields(s)
		if len(fields) > MaxWords {
			c.find(line, "a sentence of %d words, at most %d: %s ...", len(fields), MaxWords, strings.Join(fields[:8], " "))
		}
	}
}

// Markdown checks a page. A page of docs/ says in its first paragraph who it is for, links the
// glossary, and ends with where to go next. A generated page ("; do not edit.") may have long
// lines. A file without a title is a part of another page.
func Markdown(file, text string) []Finding {
	c := &checker{file: file}
	var paragraph []string
	var paragraphs []string
	began, fenced, generated := 0, false, strings.Contains(text, "; do not edit.")
	flush := func() {
		if joined := strings.Join(paragraph, " "); joined != "" {
			c.words(began, joined)
			c.sentences(began, joined)
			paragraphs = append(paragraphs, joined)
		}
		paragraph = nil
	}
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(bare, "```"):
			fenced = !fenced
			flush()
		case fenced:
		case len(paragraph) == 0 && strings.HasPrefix(line, "    "): // an example
		case bare == "" || strings.HasPrefix(bare, "<!--"):
			flush()
		case strings.HasPrefix(bare, "|") || strings.HasPrefix(bare, "#"):
			flush()
			c.words(i+1, bare)
		default:
			if listItem.MatchString(line) {
				flush()
			}
			if len(paragraph) == 0 {
				began = i + 1
			}
			paragraph = append(paragraph, listItem.ReplaceAllString(bare, ""))
			if columns := utf8.RuneCountInString(line); columns > MaxColumns && !generated {
				c.find(i+1, "%d columns, at most %d", columns, MaxColumns)
			}
		}
	}
	flush()
	if strings.HasPrefix(file, "docs/") && strings.HasPrefix(text, "# ") {
		c.page(text, paragraphs)
	}
	return c.found
}

// page checks the parts that every page needs. A decision record has its own form, and need not say
// for whom it is written.
func (c *checker) page(text string, paragraphs []string) {
	record := regexp.MustCompile(`^docs/adr/(?:\d{4}-|template)`).MatchString(c.file)
	if !record && (len(paragraphs) == 0 || !strings.HasPrefix(paragraphs[0], "For ")) {
		c.find(1, "the first paragraph says who the page is for: For ...")
	}
	if len(paragraphs) == 0 || !strings.HasPrefix(paragraphs[len(paragraphs)-1], "Next: ") {
		c.find(strings.Count(text, "\n"), "the last paragraph says where to go next: Next: ...")
	}
	if c.file != "docs/glossary.md" && !strings.Contains(text, "glossary.md)") {
		c.find(1, "the page does not link the glossary")
	}
}

// Go checks the comments of a source file and the words of its texts: errors, help and alarms. The
// texts of the folders in plain have stricter rules, except in tests.
func Go(file string, source []byte) ([]Finding, error) {
	c := &checker{file: file}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", file, err)
	}
	for _, group := range parsed.Comments {
		line := set.Position(group.Pos()).Line
		for _, comment := range group.List {
			at := set.Position(comment.Pos())
			columns := at.Column - 1 + utf8.RuneCountInString(comment.Text)
			if at.Column == 1 && columns > MaxColumns && !directive.MatchString(comment.Text) {
				c.find(at.Line, "%d columns, at most %d", columns, MaxColumns)
			}
		}
		for _, paragraph := range comments(group.Text()) {
			c.words(line, strings.TrimSpace(paragraph))
			c.sentences(line, paragraph)
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil && strings.Count(text, " ") > 1 {
				line := set.Position(literal.Pos()).Line
				c.words(line, text)
				if plain.MatchString(file) && !strings.HasSuffix(file, "_test.go") {
					c.avoid(textWords, line, text)
				}
			}
		}
		return true
	})
	return c.found, nil
}

// comments splits a comment into paragraphs and list items, without its examples.
func comments(text string) []string {
	var all []string
	current := ""
	for _, line := range append(strings.Split(text, "\n"), "") {
		if line == "" || line[0] == '\t' || listItem.MatchString(line) || strings.HasPrefix(line, "# ") {
			all = append(all, current)
			current = ""
		}
		if line != "" && line[0] != '\t' {
			current += " " + listItem.ReplaceAllString(line, "")
		}
	}
	return all
}
