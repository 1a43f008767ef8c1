package dev

import (
	"sync"
	"time"

	"github.com/lullhq/lull/internal/journal"
)

// Keeper writes to disk. Fault says why it last could not; nil where it could. It is safe for
// concurrent use.
type Keeper interface{ Fault() error }

var _ Keeper = (*Folder)(nil)

// disk watches what is written to disk. A disk that is full loses nothing: what could not be
// written is tried again. But it is tried for ever, and nobody would know.
type disk struct {
	keepers []Keeper
	say     func(error)
	note    func(journal.Note)

	mu  sync.Mutex
	err error
}

// fault is the first one's that has one.
func (d *disk) fault() error {
	for _, k := range d.keepers {
		if err := k.Fault(); err != nil {
			return err
		}
	}
	return nil
}

// look says what has changed.
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

// Trouble is why something cannot be written to disk; nil where everything can.
func (e *Engine) Trouble() error { return e.disk.fault() }
