// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"sync"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
)

// Keeper is a part that writes to disk. Fault returns the error of the last write, or nil if that
// write succeeded. A Keeper is safe for concurrent use.
type Keeper interface{ Fault() error }

var _ Keeper = (*Folder)(nil)

// disk reports when writes to disk fail. A full disk loses nothing, because a failed write is
// retried until it succeeds. The user must see why the stack does not progress.
type disk struct {
	keepers []Keeper
	say     func(error)
	note    func(journal.Note)

	mu  sync.Mutex
	err error
}

// fault returns the error of the first keeper whose last write failed, or nil.
func (d *disk) fault() error {
	for _, k := range d.keepers {
		if err := k.Fault(); err != nil {
			return err
		}
	}
	return nil
}

// look checks all keepers. The method reports a change: writes began to fail, or they succeed
// again.
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

// Trouble returns the reason why a write to disk fails, or nil if all writes succeed.
func (e *Engine) Trouble() error { return e.disk.fault() }
