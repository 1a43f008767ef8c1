// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the lists of exported names in testdata")

// public are the folders of the packages that another module may import.
var public = []string{"command", "event", "searchable", "setting", "sink", "source"}

// TestThePublicPackagesAreAsListed fails if an exported name, type or field differs from the list.
// The fix is an entry in CHANGELOG.md, and then -update.
func TestThePublicPackagesAreAsListed(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	for _, top := range public {
		var list bytes.Buffer
		err := filepath.WalkDir(filepath.Join(root, top), func(dir string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return err
			}
			if e.Name() == "internal" || e.Name() == "testdata" {
				return fs.SkipDir
			}
			exported(t, &list, root, dir)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join("testdata", top+".txt")
		if *update {
			if err := os.WriteFile(name, list.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range differences(string(want), list.String()) {
			t.Errorf("%s: %s\nsay so in CHANGELOG.md, then: go test ./internal/proof/api -update", top, l)
		}
	}
}

// TestADifferenceIsFound shows that a removed name and a new name are both found.
func TestADifferenceIsFound(t *testing.T) {
	t.Parallel()
	got := differences("func A()\nfunc B()\n", "func A()\nfunc C()\n")
	if len(got) != 2 || got[0] != "gone: func B()" || got[1] != "new: func C()" {
		t.Errorf("differences() = %q, want B gone and C new", got)
	}
}

// exported writes the exported declarations of the package in dir, without comments and function
// bodies.
func exported(t *testing.T, to *bytes.Buffer, root, dir string) {
	t.Helper()
	files := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if !ast.FileExports(f) {
			continue
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				continue
			}
			if f, ok := d.(*ast.FuncDecl); ok {
				f.Body = nil
			}
			var text bytes.Buffer
			if err := printer.Fprint(&text, files, d); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(text.String()) {
				to.WriteString(filepath.ToSlash(rel) + ": " + strings.TrimRight(line, "\n") + "\n")
			}
		}
	}
}

// differences lists the lines that only one of two lists has.
func differences(want, got string) (all []string) {
	only := func(a, b, what string) {
		counts := map[string]int{}
		for line := range strings.Lines(b) {
			counts[line]++
		}
		for line := range strings.Lines(a) {
			if counts[line]--; counts[line] < 0 {
				all = append(all, what+": "+strings.TrimSpace(line))
			}
		}
	}
	only(want, got, "gone")
	only(got, want, "new")
	return all
}
