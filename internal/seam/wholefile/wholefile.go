// SPDX-License-Identifier: Apache-2.0

// Package wholefile writes files that appear whole or not at all. A reader sees the old content or
// the new content, never a part. If a write fails, only the old file remains.
package wholefile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write calls fill to write a temporary file in the folder of path. Then Write gives the file its
// mode and renames it to path.
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
