// Package durable keeps what the stores of a process hold in one file, so that the next process can
// go on from there.
//
// It promises that the file always shows what had been put up to one moment: nothing in it is newer
// than something that is missing. What was put before a Flush that reports no fault outlives the
// process, also one that is killed. It is not forced to the disk: a machine that loses its power
// may lose the file.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/lullhq/lull/internal/local/datafolder"
)

// lockWait is how long Open waits for the lock of another process. It must exceed one poll of the
// lock, 50 ms.
const lockWait = 200 * time.Millisecond

// Store is one file. It is safe for concurrent use. Its entries have a key each, in rooms.
type Store struct {
	path string
	db   *bolt.DB

	writing sync.Mutex // held by whoever writes what is pending

	mu      sync.Mutex
	pending map[entry]any // the newest value of each; nil where it was deleted
	asked   int64         // puts and deletes so far
	written int64         // how many of them are in the file
	err     error         // why the last write failed
}

type entry struct{ room, key string }

// Open opens a file in a data folder, which is made if it does not exist. The error is a
// *datafolder.InUseError where another process has it open. Close it after use.
func Open(dir, path string) (*Store, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout: lockWait, NoSync: true, NoGrowSync: true, NoFreelistSync: true, FreelistType: bolt.FreelistMapType,
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, &datafolder.InUseError{Dir: dir}
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &Store{path: path, db: db, pending: map[entry]any{}}, nil
}

// Put keeps a value in place of what the key had. The value is written by the next Flush, as JSON,
// and must not change from now on.
func (s *Store) Put(room, key string, value any) { s.set(room, key, value) }

// Delete forgets a key.
func (s *Store) Delete(room, key string) { s.set(room, key, nil) }

func (s *Store) set(room, key string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[entry{room, key}] = value
	s.asked++
}

// Flush writes what was put before it, alone or together with what others put. Where that fails
// Fault says why, and the next Flush tries again.
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
	if s.written >= want { // by somebody else meanwhile
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

// Each calls f with every entry of a room, by key. The value is f's only until it returns.
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

// Fault is why something that was put is not in the file; nil where everything is that was flushed.
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
