// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lullhq/lull/internal/seam/wholefile"
)

// progress is how far a copy is. It is stored in a file of JSON.
type progress struct {
	// System identifies the database's server and Slot the stream beside the copy. A copy is only
	// continued beside the same stream.
	System   string               `json:"system"`
	Database string               `json:"database"`
	Slot     string               `json:"slot"`
	Tables   map[string]tableDone `json:"tables"`
}

// tableDone is how far a copy of a table is.
type tableDone struct {
	Rows  int      `json:"rows"`            // that lull's queue has accepted
	After []string `json:"after,omitempty"` // the key of the last of these rows
	Done  bool     `json:"done"`
}

// load reads the file, or returns an empty progress if there is no file.
func load(path string, of progress) (progress, error) {
	of.Tables = map[string]tableDone{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return of, nil
	}
	if err != nil {
		return of, fmt.Errorf("--copy: %w", err)
	}
	var p progress
	if err := json.Unmarshal(text, &p); err != nil || p.Tables == nil {
		return of, fmt.Errorf("--copy %s: the file is not the progress of a copy: name another file", path)
	}
	if p.System != of.System || p.Database != of.Database || p.Slot != of.Slot {
		return of, fmt.Errorf("--copy %s: the file belongs to a copy of database %s with slot %s on another server, or to "+
			"another database or slot: name another file", path, p.Database, p.Slot)
	}
	return p, nil
}

// save writes the file. After a crash, the file is either old or new.
func (p progress) save(path string) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(path, 0o600, func(f *os.File) error {
		if _, err := f.Write(append(text, '\n')); err != nil {
			return err
		}
		return f.Sync()
	})
}
