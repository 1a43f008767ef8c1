// Package tree finds the repository's own files, for the tests that read them, and writes the parts
// of its pages that tests make.
package tree

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Root is the repository's folder, for the tests of a package in internal/proof.
const Root = "../../.."

// Text is a file of the repository, by its path below the root.
func Text(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Part is what a page shows between two marks:
//
//	<!-- NAME: begin, written by COMMAND -->
//	<!-- NAME: end -->
func Part(t testing.TB, page, name string) (before, part, after string) {
	t.Helper()
	head, rest, found := strings.Cut(Text(t, page), "<!-- "+name+": begin, ")
	by, rest, _ := strings.Cut(rest, "\n")
	part, tail, ended := strings.Cut(rest, "<!-- "+name+": end -->")
	if !found || !ended {
		t.Fatalf("%s has lost its marks around %s", page, name)
	}
	return head + "<!-- " + name + ": begin, " + by + "\n", part, "<!-- " + name + ": end -->" + tail
}

// Generated compares a part of a page with what a test has made of it, or writes it.
func Generated(t testing.TB, page, name, text string, write bool) {
	t.Helper()
	before, part, after := Part(t, page, name)
	switch {
	case part == text:
	case !write:
		t.Errorf("%s: %s is out of date: its mark says what writes it", page, name)
	default:
		if err := os.WriteFile(filepath.Join(Root, page), []byte(before+text+after), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// built are the folders that tools write.
var built = []string{"bin", "dist", "cdk.out", "out", "node_modules"}

// Files are the repository's files, by their paths below its root, but for those that tools write.
// A cached test result is only as fresh as what the test itself has looked at. A test that asks the
// go command calls Files for that alone.
func Files(t testing.TB) (files []string) {
	t.Helper()
	err := filepath.WalkDir(Root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			name, err := filepath.Rel(Root, path)
			files = append(files, filepath.ToSlash(name))
			return err
		case path != Root && (strings.HasPrefix(d.Name(), ".") || slices.Contains(built, d.Name())):
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("find the repository's files: %v", err)
	}
	return files
}
