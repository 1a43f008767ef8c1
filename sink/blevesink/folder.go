package blevesink

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// markerName is the file that says that a folder is ours. It is written first and never changes.
const markerName = "lull.json"

// marker is its content.
type marker struct {
	Holds  string `json:"holds"`
	Schema int    `json:"schema"`
}

// ours is the marker of folders that this version understands.
var ours = marker{Holds: "lull search index", Schema: 1}

// ForeignFolderError says that a folder holds something else than lull's data. Nothing in it was
// touched.
type ForeignFolderError struct {
	Dir    string
	Reason string // what was found
}

func (e *ForeignFolderError) Error() string {
	return fmt.Sprintf("data folder %s %s: choose an empty folder, a new one, or one that lull made", e.Dir, e.Reason)
}

// InUseError says that another process, or another Index of this one, has the folder open.
type InUseError struct{ Dir string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("data folder %s is in use by another lull: stop that one or choose another folder", e.Dir)
}

// claimFolder makes sure that dir exists and is ours. It writes the marker into an empty folder,
// and reports whether the folder was marked before.
func claimFolder(dir string) (marked bool, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) || isFile(dir) {
			return false, &ForeignFolderError{Dir: dir, Reason: "is a file"}
		}
		return false, fmt.Errorf("make data folder: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, markerName))
	switch {
	case err == nil:
		return true, checkMarker(dir, text)
	case !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("read data folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, fmt.Errorf("read data folder: %w", err)
	}
	if len(entries) > 0 {
		return false, &ForeignFolderError{Dir: dir, Reason: fmt.Sprintf("is not empty and has no %s", markerName)}
	}
	return false, writeMarker(dir)
}

func isFile(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && !info.IsDir()
}

func checkMarker(dir string, text []byte) error {
	var m marker
	if err := json.Unmarshal(text, &m); err != nil || m.Holds != ours.Holds {
		return &ForeignFolderError{Dir: dir, Reason: fmt.Sprintf("has a %s that lull did not write", markerName)}
	}
	if m.Schema > ours.Schema {
		return &ForeignFolderError{Dir: dir, Reason: fmt.Sprintf(
			"was written by a newer lull (schema %d, this one knows %d)", m.Schema, ours.Schema)}
	}
	return nil
}

// writeMarker fails where the file exists already: of two that start in one empty folder only one
// makes the index.
func writeMarker(dir string) error {
	text, err := json.Marshal(ours)
	if err != nil {
		return fmt.Errorf("write marker: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, markerName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &InUseError{Dir: dir}
	}
	if err != nil {
		return fmt.Errorf("write marker: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write marker: %w", err)
	}
	return nil
}
