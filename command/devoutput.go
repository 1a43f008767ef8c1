// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// checkOutputs checks --report and --dump before anything is read. Each file must be writable, and
// must not be a file that the run needs.
func (f *devFlags) checkOutputs() error {
	type named struct{ flag, path string }
	taken := []named{{"--config", f.config}, {"--events", f.events}}
	for _, to := range []named{{"--report", f.report}, {"--dump", f.dump}} {
		if to.path == "" {
			continue
		}
		if err := writable(to.path); err != nil {
			return fmt.Errorf("%s %s: %w", to.flag, to.path, err)
		}
		for _, other := range taken {
			if other.path != "" && sameFile(to.path, other.path) {
				return fmt.Errorf("%s and %s name the same file %s", other.flag, to.flag, to.path)
			}
		}
		if f.data != "" && within(to.path, f.data) {
			return fmt.Errorf("%s %s: is in the data folder %s, which only lull may use: name another folder", to.flag,
				to.path, f.data)
		}
		taken = append(taken, to)
	}
	return nil
}

// writable says why a file cannot be replaced by a temporary file from its folder.
func writable(path string) error {
	switch info, err := os.Stat(path); {
	case err != nil:
	case info.IsDir():
		return fmt.Errorf("is a folder: name a file")
	case !info.Mode().IsRegular(): // a device or a pipe would be replaced by a file, for all programs
		return fmt.Errorf("is not a regular file: name another")
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no folder %s", dir)
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("cannot be written: %w", err)
	}
	_ = f.Close() // the error does not matter, because the file is empty
	if err := os.Remove(f.Name()); err != nil {
		return fmt.Errorf("cannot be replaced: %w", err)
	}
	return nil
}

// sameFile reports whether two paths name the same file. The file need not exist.
func sameFile(a, b string) bool {
	ofA, errA := os.Stat(a)
	ofB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(ofA, ofB) || resolved(a) == resolved(b)
}

// within reports whether a file is in a folder, at any depth.
func within(path, dir string) bool {
	rel, err := filepath.Rel(resolved(dir), resolved(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// resolved returns an absolute path. Symbolic links are resolved in the part of the path that
// exists.
func resolved(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return filepath.Clean(path)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	if dir := filepath.Dir(abs); dir != abs {
		return filepath.Join(resolved(dir), filepath.Base(abs))
	}
	return abs
}
