// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/durable"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/datafolder"
	"github.com/lullhq/lull/sink"
)

// stateFile is the file with the state of the run in a data folder.
const stateFile = "state.db"

// Folder is a data folder. A Folder keeps the state of this run for the next run. The engine writes
// to the Folder during the run, so that even a killed process loses nothing.
type Folder struct {
	*durable.Store
	dir  string
	from time.Time
}

var _ Keeper = (*Folder)(nil)

// OpenFolder opens a data folder that [ClaimFolder] has claimed. The error is a
// *datafolder.InUseError if another process has the folder open. Close the folder after use.
func OpenFolder(dir string) (*Folder, error) {
	store, err := durable.Open(dir, filepath.Join(dir, stateFile))
	if err != nil {
		return nil, err
	}
	f := &Folder{Store: store, dir: dir}
	err = store.Each(memory.RoomClock, func(_ string, text []byte) error {
		var at time.Time
		err := json.Unmarshal(text, &at)
		if at.After(f.from) {
			f.from = at
		}
		return err
	})
	if err != nil {
		_ = store.Close() // nothing was written
		return nil, fmt.Errorf("open data folder: %w", err)
	}
	return f, nil
}

// From returns the latest time that the last run stored in the folder. The clock of this run must
// not be earlier. Otherwise new messages would get times before those of the last run.
func (f *Folder) From() time.Time { return f.from }

// ClaimFolder claims a folder that is empty or missing, or that lull made for the same sinks or for
// some of them. Call keep after all sinks are open. ClaimFolder adds new sinks to the marker of the
// folder. If the only sink keeps its documents in the folder (Bleve), ClaimFolder does nothing,
// because that sink claims the folder itself.
func ClaimFolder(dir string, cfg *config.Config) (keep func() error, err error) {
	ours := datafolder.Marker{
		Holds: "lull dev state", Schema: 1, Sinks: map[string]string{}, First: map[string]string{},
	}
	for name, s := range cfg.Sinks {
		if kind, _ := sink.Lookup(s.Kind); kind.InFolder && len(cfg.Sinks) == 1 {
			return func() error { return nil }, nil
		}
		ours.Sinks[name] = strings.TrimSpace(s.Kind + " " + s.URL)
	}
	for c := range cfg.Collections {
		ours.First[c] = cfg.SinksFor(c)[0]
	}
	if len(cfg.Collections) == 0 {
		ours.First[""] = cfg.DefaultSink
	}
	_, err = ours.Claim(dir)
	return func() error { return ours.Keep(dir) }, err
}
