// Package wholefile writes files that appear whole or not at all: a reader sees the old content or
// the new one, never a part, and a write that fails leaves the old file and nothing else.
package wholefile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write lets fill write a temporary file in the folder of path, gives it the mode and renames it to
// path.
func Write(path string, mode fs.FileMode, fill func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the first error is the one to report
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	if err = fill(f); err == nil {
		err = f.Chmod(mode)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
