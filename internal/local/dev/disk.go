package dev

import (
	"sync"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
)

// Keeper writes to disk. Fault is the error of its last write; nil if that succeeded. It is safe
// for concurrent use.
type Keeper interface{ Fault() error }

var _ Keeper = (*Folder)(nil)

// disk watches the writes to disk. A full disk loses nothing, because a failed write is retried
// without end. But without disk, no message would say that writes fail.
type disk struct {
	keepers []Keeper
	say     func(error)
	note    func(journal.Note)

	mu  sync.Mutex
	err error
}

// fault is the fault of the first keeper that has one.
func (d *disk) fault() error {
	for _, k := range d.keepers {
		if err := k.Fault(); err != nil {
			return err
		}
	}
	return nil
}

// look reports that writes began to fail, or that they succeed again.
func (d *disk) look(now time.Time) {
	err := d.fault()
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := (err == nil) != (d.err == nil)
	d.err = err
	if !changed {
		return
	}
	if err != nil {
		d.note(journal.Note{Step: journal.CallFailed, At: now, Detail: err.Error()})
	}
	if d.say != nil {
		d.say(err)
	}
}

// Trouble says why a write to disk fails; nil if all writes succeed.
func (e *Engine) Trouble() error { return e.disk.fault() }
