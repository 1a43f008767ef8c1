// SPDX-License-Identifier: Apache-2.0

// Package datafolder marks the folders that lull may use, with a marker file in each.
//
// The package promises that lull uses a folder only if the folder is missing, empty or marked as
// lull's own. lull changes nothing in any other folder.
package datafolder

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/lullhq/lull/internal/seam/wholefile"
)

// MarkerName is the name of the marker file. The marker is the first file that is written into a
// folder, and only [Marker.Keep] changes it.
const MarkerName = "lull.json"

// Marker is the content of the marker file.
type Marker struct {
	Holds  string `json:"holds"`
	Schema int    `json:"schema"`
	// Sinks are the sinks' addresses by name, if the folder has rows for sinks elsewhere. Rows of
	// another sink would make every event for this sink look old.
	Sinks map[string]string `json:"sinks,omitempty"`
	// First is the first sink of each collection. The key "" is for collections that are not named.
	// The names of the first sink's rows do not contain the sink. So if another sink became the
	// first, it would use those rows as its own.
	First map[string]string `json:"first,omitempty"`
}

// ForeignError says that a folder has an unexpected content. lull changed nothing in the folder.
type ForeignError struct {
	Dir    string
	Reason string // what the folder has, as a predicate
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("data folder %s %s: choose an empty folder, a new one, or one that lull made", e.Dir, e.Reason)
}

// InUseError says that the folder is open already, in this process or in another one.
type InUseError struct{ Dir string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("data folder %s is in use by another lull: stop that one or choose another folder", e.Dir)
}

// Claim makes sure that dir exists and has this marker. It writes the marker into an empty folder.
// marked reports whether the folder was marked before.
func (ours Marker) Claim(dir string) (marked bool, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		if info, missing := os.Stat(dir); missing == nil && !info.IsDir() {
			return false, &ForeignError{dir, "is a file"}
		}
		return false, fmt.Errorf("make data folder: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, MarkerName))
	if err == nil {
		return true, ours.check(dir, text)
	}
	entries, unread := os.ReadDir(dir)
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("read data folder: %w", err)
	case unread != nil:
		return false, fmt.Errorf("read data folder: %w", unread)
	case len(entries) > 0:
		return false, &ForeignError{dir, fmt.Sprintf("is not empty and has no %s", MarkerName)}
	}
	return false, ours.write(dir)
}

// check returns an error if a folder's marker does not fit to ours.
func (ours Marker) check(dir string, text []byte) error {
	var m Marker
	if err := json.Unmarshal(text, &m); err != nil || m.Holds != ours.Holds {
		return &ForeignError{dir, fmt.Sprintf("has a %s that lull did not write for this", MarkerName)}
	}
	if m.Schema > ours.Schema {
		return &ForeignError{
			dir, fmt.Sprintf("was written by a newer lull (schema %d, this one knows %d)", m.Schema, ours.Schema),
		}
	}
	for name, address := range m.Sinks {
		if ours.Sinks[name] != address {
			return &ForeignError{
				dir, fmt.Sprintf("has rows for other sinks (%v): they are wrong for %v", m.Sinks, ours.Sinks),
			}
		}
	}
	all := maps.Clone(ours.First)
	maps.Copy(all, m.First)
	for _, c := range slices.Sorted(maps.Keys(all)) {
		was, is := cmp.Or(m.First[c], m.First[""]), cmp.Or(ours.First[c], ours.First[""])
		if was != "" && is != "" && was != is {
			return &ForeignError{dir, fmt.Sprintf("has rows of collection %q for %s, which is not its first sink now: "+
				"%s would use these rows as its own", c, was, is)}
		}
	}
	return nil
}

// Keep adds the sinks and first sinks of ours to the marker of a claimed folder.
func (ours Marker) Keep(dir string) error {
	path := filepath.Join(dir, MarkerName)
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read marker: %w", err)
	}
	m := Marker{Sinks: map[string]string{}, First: map[string]string{}}
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("read marker: %w", err)
	}
	maps.Copy(m.Sinks, ours.Sinks)
	maps.Copy(m.First, ours.First)
	return wholefile.Write(path, 0o644, func(f *os.File) error { return json.NewEncoder(f).Encode(m) })
}

// write writes the marker. It fails if the file exists: if two processes start in one empty folder,
// only one of them gets the folder.
func (ours Marker) write(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, MarkerName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &InUseError{dir}
	}
	if err == nil {
		err = errors.Join(json.NewEncoder(f).Encode(ours), f.Close())
	}
	if err != nil {
		return fmt.Errorf("write marker: %w", err)
	}
	return nil
}
