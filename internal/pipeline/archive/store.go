// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"time"
)

// Errors of Get about one object. Any other error may be about all objects, or may be temporary.
var (
	ErrNotFound   = errors.New("object of the archive not found")
	ErrUnreadable = errors.New("object of the archive cannot be read") // too large, or moved to a vault
)

// Writer is the part of a Store that receive needs.
type Writer interface {
	// Put writes an object. It replaces an object of the same name.
	Put(ctx context.Context, name Name, object []byte) error
}

// Object is an object in a list.
type Object struct {
	Name  Name
	Bytes int64
}

// Store keeps objects. Implementations are safe for concurrent use.
type Store interface {
	Writer
	// Get returns the whole object, or ErrNotFound or ErrUnreadable.
	Get(ctx context.Context, name Name) ([]byte, error)
	// List returns at most limit names, sorted, which sort after after and before to. The list may
	// contain names that are not those of a batch. more says that there are more names.
	List(ctx context.Context, after, to Name, limit int) (list []Object, more bool, err error)
	// Remove removes an object and the former versions of it that the store keeps.
	Remove(ctx context.Context, name Name) error
	// Rewrite replaces an object. The store keeps no former version of the object.
	Rewrite(ctx context.Context, name Name, object []byte) error
}

// Range calls each for the objects received at from or later and before to, whose names sort
// after after. It stops at the first error of the store or of each.
func Range(ctx context.Context, s Store, from, to time.Time, after Name, each func(Object) error) error {
	after = max(after, After(from))
	for more := true; more; {
		var list []Object
		var err error
		if list, more, err = s.List(ctx, after, After(to), page); err != nil {
			return err
		}
		for _, o := range list {
			if err := each(o); err != nil {
				return err
			}
			after = o.Name
		}
	}
	return nil
}

// page is how many objects one call lists, which is S3's limit.
const page = 1000
