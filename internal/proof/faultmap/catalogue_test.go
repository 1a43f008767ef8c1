// SPDX-License-Identifier: Apache-2.0

package faultmap

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/proof/tree"
)

// catalogue lists the tests that a page can name: the test functions of the repository, and the
// possible names of subtests.
type catalogue struct {
	tests map[string]string // the name of a test, and what is wrong with the test; mostly empty
	parts map[string]bool   // string literals and names of scenario files, as fold returns them
}

// survey reads every Go file and the names in every testdata folder. survey ignores build tags,
// because the end-to-end tests count too.
func survey(t *testing.T, files []string) catalogue {
	t.Helper()
	c := catalogue{tests: make(map[string]string), parts: make(map[string]bool)}
	for _, name := range files {
		if strings.Contains(name, "/testdata/") {
			c.parts[fold(strings.TrimSuffix(path.Base(name), path.Ext(name)))] = true
		}
		if path.Ext(name) != ".go" {
			continue
		}
		c.add(t, name, tree.Text(t, name))
	}
	return c
}

// add adds the tests and strings of one Go file.
func (c *catalogue) add(t *testing.T, path, source string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				c.parts[fold(s)] = true
			}
		}
		return true
	})
	if !strings.HasSuffix(path, "_test.go") {
		return
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" || !takesT(f) {
			continue
		}
		if why, seen := c.tests[f.Name.Name]; !seen || why != "" {
			c.tests[f.Name.Name] = flaw(f)
		}
	}
}

// takesT reports whether f has the one parameter *testing.T.
func takesT(f *ast.FuncDecl) bool {
	params := f.Type.Params.List
	return len(params) == 1 && len(params[0].Names) == 1 && types.ExprString(params[0].Type) == "*testing.T"
}

// flaw says why a test function proves nothing, as far as its first statements show.
func flaw(f *ast.FuncDecl) string {
	if f.Body == nil || len(f.Body.List) == 0 {
		return "is empty"
	}
	for _, stmt := range f.Body.List {
		expr, ok := stmt.(*ast.ExprStmt)
		if !ok {
			return ""
		}
		called, _, _ := strings.Cut(types.ExprString(expr.X), "(")
		switch called {
		case "t.Skip", "t.Skipf", "t.SkipNow":
			return "skips itself"
		case "t.Parallel", "t.Helper", "t.Log", "t.Logf":
		default:
			return ""
		}
	}
	return "does nothing"
}

// known returns what is wrong with the name of a test, or "".
func (c *catalogue) known(test string) string {
	name, part, sub := strings.Cut(test, "/")
	why, ok := c.tests[name]
	switch {
	case !ok:
		return "does not exist"
	case why != "":
		return why
	case sub && !c.parts[fold(part)]:
		return "has no such part"
	}
	return ""
}

// fold unifies the ways to write the name of a subtest. The testing package prints spaces as
// underscores, and scenario files often have dashes in their names.
func fold(s string) string {
	return strings.ToLower(strings.NewReplacer("_", " ", "-", " ").Replace(s))
}

func TestCatalogueKnowsTests(t *testing.T) {
	t.Parallel()
	c := catalogue{tests: make(map[string]string), parts: make(map[string]bool)}
	source := `package a
		func TestGood(t *testing.T) { t.Parallel(); check(t) }
		func TestSuite(t *testing.T) { t.Run("a part of it", check) }
		func TestEmpty(t *testing.T) {}
		func TestIdle(t *testing.T) { t.Parallel() }
		func TestSkipped(t *testing.T) { t.Parallel(); t.Skip("later") }
		func TestMain(m *testing.M) { os.Exit(m.Run()) }
		func TestHelper(name string) { check(nil) }
		func (s suite) TestMethod(t *testing.T) { check(t) }
		// func TestComment(t *testing.T) { check(t) }
	`
	c.add(t, "a_test.go", source)
	c.add(t, "b.go", "package a\nfunc TestOutside(t *testing.T) { check(t) }")
	tests := []struct{ name, want string }{
		{"TestGood", ""},
		{"TestSuite/a part of it", ""},
		{"TestSuite/a_part_of_it", ""},
		{"TestSuite/another part", "has no such part"},
		{"TestEmpty", "is empty"},
		{"TestIdle", "does nothing"},
		{"TestSkipped", "skips itself"},
		{"TestMain", "does not exist"},
		{"TestHelper", "does not exist"},
		{"TestMethod", "does not exist"},
		{"TestComment", "does not exist"},
		{"TestOutside", "does not exist"},
	}
	for _, tt := range tests {
		if got := c.known(tt.name); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
