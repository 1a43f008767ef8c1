// SPDX-License-Identifier: Apache-2.0

// Package durable keeps the contents of a process's stores in one file, so that the next process
// can continue.
//
// The file always contains the exact state of one moment. If the file contains a change, it also
// contains all earlier changes. After a Flush without a fault, all earlier changes survive the end
// of the process, even if the process is killed. The file is not synced to the disk, so a power
// failure may destroy it.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/lullhq/lull/internal/seam/datafolder"
)

// lockWait is how long Open waits while another process has the lock of the file. bbolt looks at
// the lock every 50 ms, so lockWait must be longer than that.
const lockWait = 200 * time.Millisecond

// Store keeps entries in one file. Each entry has a room, which names the store of the entry, and a
// key. A Store is safe for concurrent use.
type Store struct {
	path string
	db   *bolt.DB

	writing sync.Mutex // held during a write of the pending changes

	mu      sync.Mutex
	pending map[entry]any // the newest value of each entry; nil if the entry was deleted
	asked   int64         // how many puts and deletes were made so far
	written int64         // how many of these puts and deletes are in the file
	err     error         // why the last write failed
}

type entry struct{ room, key string }

// Open opens a file in a data folder, and creates the file if it does not exist. Open does not
// follow a symbolic link, because the link could name any file that this user may write. The error
// is a *datafolder.InUseError if another process has the file open. Close the store after use.
func Open(dir, path string) (*Store, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		OpenFile: openFile, Timeout: lockWait, NoSync: true, NoGrowSync: true, NoFreelistSync: true,
		FreelistType: bolt.FreelistMapType,
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, &datafolder.InUseError{Dir: dir}
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &Store{path: path, db: db, pending: map[entry]any{}}, nil
}

// openFile opens a file, and refuses a symbolic link. If a link that leaves the folder appears
// after the check, os.Root refuses it.
func openFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	name := filepath.Base(path)
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("it is not a plain file: remove it, or choose another data folder")
	}
	return root.OpenFile(name, flag, mode)
}

// Put sets the value of a key. The next Flush writes the value as JSON, so the value must not
// change after Put.
func (s *Store) Put(room, key string, value any) { s.set(room, key, value) }

// Delete removes a key.
func (s *Store) Delete(room, key string) { s.set(room, key, nil) }

func (s *Store) set(room, key string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[entry{room, key}] = value
	s.asked++
}

// Flush writes all changes that were made before it, or waits until another Flush has written them.
// If the write fails, Fault says why, and the next Flush tries again.
func (s *Store) Flush() {
	s.mu.Lock()
	want := s.asked
	done := s.written >= want
	s.mu.Unlock()
	if done {
		return
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	if s.written >= want { // another Flush wrote the changes
		s.mu.Unlock()
		return
	}
	batch, upTo := s.pending, s.asked
	s.pending = map[entry]any{}
	s.mu.Unlock()
	err := s.write(batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	if err == nil {
		s.written = upTo
		return
	}
	for e, v := range batch {
		if _, newer := s.pending[e]; !newer {
			s.pending[e] = v
		}
	}
}

func (s *Store) write(batch map[entry]any) error {
	err := s.db.Update(func(tx *bolt.Tx) error {
		for e, v := range batch {
			room, err := tx.CreateBucketIfNotExists([]byte(e.room))
			if err != nil {
				return err
			}
			if v == nil {
				err = room.Delete([]byte(e.key))
			} else if text, bad := json.Marshal(v); bad == nil {
				err = room.Put([]byte(e.key), text)
			} else {
				err = bad
			}
			if err != nil {
				return fmt.Errorf("%s %q: %w", e.room, e.key, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep the state of this run: %w", err)
	}
	return nil
}

// Each calls f with every entry of a room, in the order of the keys. f must not keep the value
// after it returns.
func (s *Store) Each(room string, f func(key string, value []byte) error) error {
	return s.db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(room))
		if b == nil {
			return nil
		}
		return b.ForEach(func(k, v []byte) error {
			if err := f(string(k), v); err != nil {
				return fmt.Errorf("read %s: %s %q: %w", s.path, room, k, err)
			}
			return nil
		})
	})
}

// Fault returns the error of the last write, or nil if all flushed changes are in the file.
func (s *Store) Fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close flushes and closes the file.
func (s *Store) Close() error {
	s.Flush()
	err := errors.Join(s.Fault(), s.db.Sync(), s.db.Close())
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}
