package dev

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/local/datafolder"
	"github.com/lullhq/lull/internal/shard"
)

// The files beside the index in a data folder.
const (
	rowsFile      = "rows.ndjson"
	lettersFile   = "letters.ndjson"
	scheduledFile = "scheduled.ndjson"
	deletesFile   = "deletes.ndjson"
)

// Folder is a data folder: where the next run finds what this one knew. It is a journal: a delete
// is noted as it is committed, because a sink that was killed with the process keeps no trace of
// what it deleted. Everything else is written by [Engine.Save].
type Folder struct {
	dir string

	mu      sync.Mutex
	deletes *os.File
	err     error // of the first note that could not be written
}

// deleted is a line of deletesFile.
type deleted struct {
	Doc shard.DocID `json:"doc"`
	Key string      `json:"key"`
	At  int64       `json:"at"` // microseconds
}

var _ journal.Journal = (*Folder)(nil)

// OpenFolder opens a data folder that is lull's: see [ClaimFolder].
func OpenFolder(dir string) (*Folder, error) {
	f, err := os.OpenFile(filepath.Join(dir, deletesFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open data folder: %w", err)
	}
	return &Folder{dir: dir, deletes: f}, nil
}

// Note keeps committed deletes. Each is one write: a process that is killed has written it or not.
func (f *Folder) Note(n journal.Note) {
	if n.Step != journal.Committed || n.Op != shard.Delete {
		return
	}
	line, err := json.Marshal(deleted{n.Doc, n.Key.String(), n.At.UnixMicro()})
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		_, err = f.deletes.Write(append(line, '\n'))
	}
	if f.err == nil && err != nil {
		f.err = fmt.Errorf("note a delete in the data folder: %w", err)
	}
}

// Fault says why a delete could not be noted; nil where each was. It is safe for concurrent use.
func (f *Folder) Fault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// forgetDeletes forgets the notes: what they say is in the rows now.
func (f *Folder) forgetDeletes() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if err := f.deletes.Truncate(0); err != nil {
		return fmt.Errorf("forget the deletes noted in the data folder: %w", err)
	}
	return nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.deletes.Close() }

// ClaimFolder takes a folder that is empty, missing or lull's, of the same sinks: their addresses
// by name. It is for stacks that are not just one Bleve index, which claims its folder itself.
func ClaimFolder(dir string, sinks map[string]string) error {
	_, err := datafolder.Marker{Holds: "lull dev state", Schema: 1, Sinks: sinks}.Claim(dir)
	return err
}
