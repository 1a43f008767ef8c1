package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/archive"
	"github.com/lullhq/lull/internal/clock"
)

// MaxArchive bounds the bytes of an archive in memory. Beyond it the oldest objects go.
const MaxArchive = 256 << 20

// Archive keeps what receive was given, as the bytes that S3 would hold.
type Archive struct {
	clk    clock.Clock
	expiry time.Duration
	keep   Keeper

	mu      sync.Mutex
	objects map[archive.Name][]byte
	names   []archive.Name // sorted
	bytes   int
}

var _ archive.Store = (*Archive)(nil)

// NewArchive returns an empty archive whose objects go after expiry.
func NewArchive(clk clock.Clock, expiry time.Duration) *Archive {
	return &Archive{clk: clk, expiry: expiry, keep: forgetful{}, objects: map[archive.Name][]byte{}}
}

const roomArchive = "archive"

// Keep goes on from the objects that were kept, and keeps them from now on. Call it before any use.
func (a *Archive) Keep(k Keeper) error {
	a.keep = k
	return restore(k, roomArchive, func(name string, object []byte) error {
		a.set(archive.Name(name), object)
		return nil
	})
}

// set is called under the lock.
func (a *Archive) set(n archive.Name, object []byte) {
	at, there := slices.BinarySearch(a.names, n)
	if !there {
		a.names = slices.Insert(a.names, at, n)
	}
	a.bytes += len(object) - len(a.objects[n])
	a.objects[n] = object
}

// drop is called under the lock.
func (a *Archive) drop(n archive.Name) {
	if at, there := slices.BinarySearch(a.names, n); there {
		a.names = slices.Delete(a.names, at, at+1)
		a.bytes -= len(a.objects[n])
		delete(a.objects, n)
		a.keep.Delete(roomArchive, string(n))
	}
}

// Put keeps the object, and lets go what is too old or too much.
func (a *Archive) Put(ctx context.Context, n archive.Name, object []byte) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("put archive: %w", err)
	}
	defer a.keep.Flush()
	a.mu.Lock()
	defer a.mu.Unlock()
	object = slices.Clone(object)
	a.set(n, object)
	a.keep.Put(roomArchive, string(n), object)
	for oldest := archive.After(a.clk.Now().Add(-a.expiry)); len(a.names) > 0; {
		if first := a.names[0]; first >= oldest && a.bytes <= MaxArchive {
			break
		}
		a.drop(a.names[0])
	}
	return nil
}

// Rewrite is Put: nothing is kept of what was there.
func (a *Archive) Rewrite(ctx context.Context, n archive.Name, object []byte) error {
	return a.Put(ctx, n, object)
}

// Get returns a copy of the object.
func (a *Archive) Get(ctx context.Context, n archive.Name) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("get archive: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	object, ok := a.objects[n]
	if !ok {
		return nil, fmt.Errorf("get %s: %w", n, archive.ErrNotFound)
	}
	return slices.Clone(object), nil
}

// List goes by name.
func (a *Archive) List(ctx context.Context, after, to archive.Name, limit int) (list []archive.Object, more bool,
	err error,
) {
	if err := ctx.Err(); err != nil {
		return nil, false, fmt.Errorf("list archive: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at, there := slices.BinarySearch(a.names, after)
	if there {
		at++
	}
	for ; at < len(a.names) && a.names[at] < to; at++ {
		if len(list) == limit {
			return list, true, nil
		}
		list = append(list, archive.Object{Name: a.names[at], Bytes: int64(len(a.objects[a.names[at]]))})
	}
	return list, false, nil
}

// Remove forgets the object.
func (a *Archive) Remove(ctx context.Context, n archive.Name) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("remove from the archive: %w", err)
	}
	defer a.keep.Flush()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(n)
	return nil
}
