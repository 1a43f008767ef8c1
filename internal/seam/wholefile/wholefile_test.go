// SPDX-License-Identifier: Apache-2.0

package wholefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/seam/wholefile"
)

func TestAFileIsReplacedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	text := func(s string, err error) func(*os.File) error {
		return func(f *os.File) error {
			_, written := f.WriteString(s)
			return errors.Join(written, err)
		}
	}
	if err := wholefile.Write(path, 0o600, text("one", nil)); err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	if err := wholefile.Write(path, 0o644, text("half", full)); !errors.Is(err, full) ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want the error and the path", err)
	}
	b, err := os.ReadFile(path)
	info, stat := os.Stat(path)
	if err != nil || stat != nil || string(b) != "one" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, error %v; want the first file as it was", b, info.Mode(), errors.Join(err, stat))
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v remains beside the file, error %v", left, err)
	}
	if err := wholefile.Write(filepath.Join(dir, "no", "file"), 0o600, text("", nil)); err == nil {
		t.Error("a file was written into a folder that does not exist")
	}
}
