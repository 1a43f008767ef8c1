// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// notRun lists the classes of shell blocks that no test runs, each with the reason.
var notRun = map[string]string{
	"aws":           "needs an AWS account",
	"emulator":      "needs LocalStack and OpenSearch: make e2e runs the same",
	"opensearch":    "needs an OpenSearch with an index: tried by hand",
	"elasticsearch": "needs an Elasticsearch with an index: tried by hand",
	"checkout":      "builds, tests or deploys a checkout: CI runs the targets themselves",
	"network":       "installs or downloads something",
	"yours":         "names a file, document or stack of the reader's",
}

// classes lists the classes that may follow each language. A language that is not listed is not
// allowed.
var classes = map[string][]string{
	"sh":   {"run", "dev", "aws", "emulator", "opensearch", "elasticsearch", "checkout", "network", "yours"},
	"text": {"", "output"},
	"yaml": {"", "fragment", "other"},
	"json": {"", "event", "document"},
	"go":   {""},
	"html": {""},
	// Other programs read these languages, and the tests do not have those programs.
	"hcl": {""}, "ini": {""}, "ts": {""}, "python": {""}, "sql": {""},
}

// Block is a fenced block of a page.
type Block struct {
	Line        int // the line number of the first line of text
	Lang, Class string
	Options     map[string]string
	Text        string
}

// Span is a piece of code within a paragraph.
type Span struct {
	Line int
	Text string
}

// Page contains the parts of a page that the tests check.
type Page struct {
	Name   string
	Blocks []Block
	Spans  []Span
}

// Parse reads a page. problems lists what breaks the rules of blocks, each with its line.
func Parse(name, text string) (p Page, problems []string) {
	p.Name = name
	bad := func(line int, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s:%d: %s", name, line, fmt.Sprintf(format, args...)))
	}
	var open *Block
	indent, before := "", ""
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimSpace(line)
		switch {
		case open != nil && bare == "```":
			p.Blocks = append(p.Blocks, *open)
			open = nil
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent) + "\n"
		case strings.HasPrefix(bare, "```"):
			indent = line[:strings.Index(line, "`")]
			b := Block{Line: i + 2, Options: map[string]string{}}
			for j, word := range strings.Fields(strings.TrimPrefix(bare, "```")) {
				key, value, option := strings.Cut(word, "=")
				switch {
				case j == 0:
					b.Lang = word
				case option && key != "event":
					b.Options[key] = value
				case option:
					b.Class, b.Options["source"] = key, value
				default:
					b.Class = word
				}
			}
			if allowed, known := classes[b.Lang]; !known {
				bad(i+1, "a block without a known language: %q", b.Lang)
			} else if !slices.Contains(allowed, b.Class) {
				bad(i+1, "%s block: class %q: want one of %q", b.Lang, b.Class, allowed)
			}
			open = &b
		case strings.HasPrefix(line, "    ") && before == "" && command(bare):
			bad(i+1, "a command outside a fenced block: %s", bare)
		default:
			for j, code := range strings.Split(line, "`") {
				if j%2 == 1 {
					p.Spans = append(p.Spans, Span{i + 1, code})
				}
			}
		}
		before = bare
	}
	if open != nil {
		bad(open.Line, "the block has no end")
	}
	return p, problems
}

// command reports whether a line is a command that a reader types.
func command(line string) bool {
	word, _, _ := strings.Cut(line, " ")
	return slices.Contains([]string{"lull", "make", "go", "curl", "aws", "cdk", "npx", "git"}, word)
}

// commands returns the simple commands of a shell script, word by word, without assignments and
// redirections. A command in a substitution $(...) counts as a separate command.
func commands(script string) (all [][]string, err error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, err
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			var words []string
			for _, w := range call.Args {
				words = append(words, plain(w))
			}
			all = append(all, words)
		}
		return true
	})
	return all, nil
}

// plain returns a word without its quotes and without the results of substitutions.
func plain(w *syntax.Word) (text string) {
	syntax.Walk(w, func(n syntax.Node) bool {
		switch part := n.(type) {
		case *syntax.CmdSubst:
			return false
		case *syntax.Lit:
			text += part.Value
		case *syntax.SglQuoted:
			text += part.Value
		}
		return true
	})
	return text
}
