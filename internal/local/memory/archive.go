// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/seam/clock"
)

// MaxArchive is the largest size of an archive in memory, in bytes. If the archive is larger, the
// oldest objects are deleted.
const MaxArchive = 256 << 20

// Archive stores the messages that receive archives, as the same bytes that the S3 archive would
// contain.
type Archive struct {
	shelf
	clk     clock.Clock
	expiry  time.Duration
	objects []archived // sorted by name
	bytes   int
}

type archived struct {
	name   archive.Name
	object []byte
}

var _ archive.Store = (*Archive)(nil)

// NewArchive returns an empty archive that deletes objects after expiry.
func NewArchive(clk clock.Clock, expiry time.Duration) *Archive {
	return &Archive{clk: clk, expiry: expiry, shelf: shelf{keep: forgetful{}}}
}

const roomArchive = "archive"

// Keep restores the objects that the Keeper has stored. From then on, the archive stores all
// changes in the Keeper. Call Keep before any other method.
func (a *Archive) Keep(k Keeper) error {
	a.keep = k
	return restore(k, roomArchive, func(name string, object []byte) error {
		a.set(archive.Name(name), object)
		return nil
	})
}

// find returns the index of an object and true, or the index at which it would be inserted and
// false. The caller holds the lock.
func (a *Archive) find(n archive.Name) (int, bool) {
	return slices.BinarySearchFunc(a.objects, n, func(o archived, n archive.Name) int { return cmp.Compare(o.name, n) })
}

// set stores an object. The caller holds the lock.
func (a *Archive) set(n archive.Name, object []byte) {
	at, there := a.find(n)
	if !there {
		a.objects = slices.Insert(a.objects, at, archived{name: n})
	}
	a.bytes += len(object) - len(a.objects[at].object)
	a.objects[at].object = object
}

// drop deletes an object. The caller holds the lock.
func (a *Archive) drop(n archive.Name) {
	if at, there := a.find(n); there {
		a.bytes -= len(a.objects[at].object)
		a.objects = slices.Delete(a.objects, at, at+1)
		a.keep.Delete(roomArchive, string(n))
	}
}

// Put stores an object. Put deletes objects that are too old, and the oldest objects if the archive
// exceeds MaxArchive.
func (a *Archive) Put(ctx context.Context, n archive.Name, object []byte) error {
	object = slices.Clone(object)
	return a.change(ctx, "put archive", func() error {
		a.set(n, object)
		a.keep.Put(roomArchive, string(n), object)
		oldest := archive.After(a.clk.Now().Add(-a.expiry))
		for len(a.objects) > 0 && (a.objects[0].name < oldest || a.bytes > MaxArchive) {
			a.drop(a.objects[0].name)
		}
		return nil
	})
}

// Rewrite calls Put, because this archive does not keep former versions of objects.
func (a *Archive) Rewrite(ctx context.Context, n archive.Name, object []byte) error {
	return a.Put(ctx, n, object)
}

// Get returns a copy of the object. The caller may change the copy.
func (a *Archive) Get(ctx context.Context, n archive.Name) (object []byte, err error) {
	err = a.look(ctx, "get "+string(n), func() error {
		at, there := a.find(n)
		if !there {
			return archive.ErrNotFound
		}
		object = slices.Clone(a.objects[at].object)
		return nil
	})
	return object, err
}

// List returns objects in the order of their names.
func (a *Archive) List(ctx context.Context, after, to archive.Name, limit int) (list []archive.Object, more bool,
	err error,
) {
	err = a.look(ctx, "list archive", func() error {
		at, there := a.find(after)
		if there {
			at++
		}
		for _, o := range a.objects[at:] {
			if o.name >= to {
				break
			}
			if more = len(list) == limit; more {
				break
			}
			list = append(list, archive.Object{Name: o.name, Bytes: int64(len(o.object))})
		}
		return nil
	})
	return list, more, err
}

// Remove deletes the object.
func (a *Archive) Remove(ctx context.Context, n archive.Name) error {
	return a.change(ctx, "remove from the archive", func() error {
		a.drop(n)
		return nil
	})
}
