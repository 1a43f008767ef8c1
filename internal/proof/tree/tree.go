// Package tree finds the repository's own files, for the tests that read them.
package tree

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Root is the repository's folder, for the tests of a package in internal/proof.
const Root = "../../.."

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
