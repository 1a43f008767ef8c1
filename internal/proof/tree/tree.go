// SPDX-License-Identifier: Apache-2.0

// Package tree finds the files of this repository for tests, and writes the generated parts of its
// pages. It also says on which machine the figures of a page were measured.
package tree

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Root is the path of the repository's root folder, as seen from a test of a package in
// internal/proof.
const Root = "../../.."

// Text returns the text of a file of the repository. name is the path below the root.
func Text(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Part returns the text of a page between two marks, and the text before and after them. The marks
// are:
//
//	<!-- NAME: begin, written by COMMAND -->
//	<!-- NAME: end -->
func Part(t testing.TB, page, name string) (before, part, after string) {
	t.Helper()
	head, rest, found := strings.Cut(Text(t, page), "<!-- "+name+": begin, ")
	by, rest, _ := strings.Cut(rest, "\n")
	part, tail, ended := strings.Cut(rest, "<!-- "+name+": end -->")
	if !found || !ended {
		t.Fatalf("%s has no marks around %s", page, name)
	}
	return head + "<!-- " + name + ": begin, " + by + "\n", part, "<!-- " + name + ": end -->" + tail
}

// Generated compares a part of a page with the text that a test has made. With write, it writes the
// text instead.
func Generated(t testing.TB, page, name, text string, write bool) {
	t.Helper()
	before, part, after := Part(t, page, name)
	switch {
	case part == text:
	case !write:
		t.Errorf("%s: %s is out of date: the mark before it names the command that writes it", page, name)
	default:
		if err := os.WriteFile(filepath.Join(Root, page), []byte(before+text+after), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// built are the folders that tools write.
var built = []string{"bin", "dist", "cdk.out", "out", "node_modules"}

// Files returns the paths of the repository's files below its root, without the folders that tools
// write. The go command caches a test's result only as long as the files that the test itself reads
// are unchanged. A test that only runs the go command reads no file itself, so the go command would
// return a stale result. Such a test calls Files.
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
