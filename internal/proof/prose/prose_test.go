// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/proof/tree"
)

// files calls f for each file of the repository outside testdata.
func files(t *testing.T, f func(path string)) {
	t.Helper()
	for _, name := range tree.Files(t) {
		if !strings.Contains(name, "/testdata/") {
			f(name)
		}
	}
}

// findings returns the findings of a page or of a source file.
func findings(t *testing.T, name, text string) []Finding {
	t.Helper()
	if path.Ext(name) == ".md" {
		return Markdown(name, text)
	}
	found, err := Go(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEnglishIsPlain(t *testing.T) {
	t.Parallel()
	files(t, func(name string) {
		if strings.HasPrefix(name, "internal/proof/prose/") { // this package contains the forbidden words
			return
		}
		if ext := path.Ext(name); ext != ".md" && ext != ".go" {
			return
		}
		for _, f := range findings(t, name, tree.Text(t, name)) {
			t.Error(f)
		}
	})
}

const page = "# T\n\nFor you. See the [glossary](glossary.md).\n\n%s\n\nNext: [a](b.md).\n"

// TestBadEnglishIsFound shows that each rule finds a fault. Without this test, a rule that allows
// everything would go unnoticed.
func TestBadEnglishIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, text, want string }{
		"private word":              {"docs/a.md", strings.ReplaceAll(page, "%s", "Mend it."), `docs/a.md:5: "Mend": write fix`},
		"letter that is not dead":   {"docs/a.md", strings.ReplaceAll(page, "%s", "The\nletter waits."), "write dead letter"},
		"is no, over a line's end":  {"docs/a.md", strings.ReplaceAll(page, "%s", "This is\nno way."), `"is no way": write is not a`},
		"private word in a table":   {"docs/a.md", strings.ReplaceAll(page, "%s", "| gate |"), "write circuit breaker"},
		"private word in a heading": {"docs/a.md", strings.ReplaceAll(page, "%s", "## The desk"), "write service"},
		"long sentence":             {"README.md", "Short. " + strings.Repeat("word\n", MaxWords+1), "README.md:1: a sentence of 26 words"},
		"long list item":            {"README.md", "- " + strings.Repeat("word\n  ", MaxWords+1), "a sentence of 26 words"},
		"long line":                 {"README.md", strings.Repeat("a bc. ", 20), "columns, at most 100"},
		"no reader":                 {"docs/a.md", "# T\n\nA [glossary](glossary.md).\n\nNext: b", "who the page is for"},
		"no way on":                 {"docs/a.md", "# T\n\nFor you: [glossary](glossary.md).\n\nThe end.", "where to go next"},
		"no glossary":               {"docs/a.md", "# T\n\nFor you.\n\nNext: b", "does not link the glossary"},
		"comment":                   {"a.go", "package a\n\n// A is\n// no B.\nvar A int", `a.go:3: "is no B"`},
		"long comment":              {"a.go", "package a\n\n// " + strings.Repeat("A b. ", 20) + "\nvar A int", "a.go:3: 103 columns"},
		"long sentence in code":     {"a.go", "package a\n\n/*\n" + strings.Repeat("word\n", MaxWords+1) + "*/\nvar A int", "a sentence of 26"},
		"error text":                {"a.go", "package a\n\nvar A = `the letter is gone`", "a.go:3: \"letter\""},
		"text of a plain folder":    {"sink/a.go", "package a\n\nvar A = `wait until somebody acts`", "write the actor"},
		"text that is not today's":  {"sink/a.go", "package a\n\nvar A = `it begins anew`", "write again"},
	} {
		found := findings(t, c.file, c.text)
		if len(found) != 1 || !strings.Contains(found[0].String(), c.want) {
			t.Errorf("%s: found %v, want one: %s", name, found, c.want)
		}
	}
}

func TestGoodEnglishPasses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"There is no row. It is no longer held. The dead letter has lower-case letters.",
		"`mend` is code, and so is [this](mend.md).",
		"```\nmend " + strings.Repeat("word ", 30) + "\n```",
		"    an example: mend",
		"| " + strings.Repeat("word ", 30) + "|",
		strings.Repeat("Two words. ", 9) + "\n" + strings.Repeat("Two words. ", 9),
	} {
		if found := Markdown("docs/a.md", strings.ReplaceAll(page, "%s", text)); found != nil {
			t.Errorf("%q: %v", text, found)
		}
	}
	source := "package a\n\n//go:generate mend\n\n// A is fine:\n//\n//\tmend it\nvar A = `mend`\n"
	if found := findings(t, "a.go", source); found != nil {
		t.Errorf("%v", found)
	}
	source = "package a\n\n// A is for somebody.\nvar A = `for somebody else`\n"
	for _, file := range []string{"sink/a_test.go", "command/a.go"} {
		if found := findings(t, file, source); found != nil {
			t.Errorf("%s: %v", file, found)
		}
	}
}

// TestTheMapNamesEveryFolder: the table of ARCHITECTURE.md must name every folder with Go files, at
// the top level and in internal/, and no other folder.
func TestTheMapNamesEveryFolder(t *testing.T) {
	t.Parallel()
	var named []string
	for line := range strings.Lines(tree.Text(t, "ARCHITECTURE.md")) {
		first, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if ok && strings.HasPrefix(line, "| `") && !strings.Contains(first, ".") {
			named = append(named, strings.Split(strings.ReplaceAll(first, "`", ""), ", ")...)
		}
	}
	var folders []string
	files(t, func(name string) {
		names := strings.SplitN(name, "/", 3)
		dir := names[0]
		if dir == "internal" {
			dir += "/" + names[1]
		}
		if path.Ext(name) == ".go" && !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	})
	for _, dir := range folders {
		if !slices.Contains(named, dir) {
			t.Errorf("ARCHITECTURE.md: the table does not name %s", dir)
		}
	}
	for _, dir := range named {
		if !slices.Contains(folders, dir) {
			t.Errorf("ARCHITECTURE.md: the table names %s, which holds no Go files", dir)
		}
	}
}
