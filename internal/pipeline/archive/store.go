package archive

import (
	"context"
	"errors"
	"time"
)

// Errors of Get that are about one object. Any other may be about all of them, or may pass.
var (
	ErrNotFound   = errors.New("object of the archive not found")
	ErrUnreadable = errors.New("object of the archive cannot be read") // too large, or moved to a vault
)

// Writer is the half of a Store that receive needs.
type Writer interface {
	// Put writes an object in place of one of that name.
	Put(ctx context.Context, name Name, object []byte) error
}

// Object is an object of a list.
type Object struct {
	Name  Name
	Bytes int64
}

// Store keeps objects. Implementations are safe for concurrent use.
type Store interface {
	Writer
	// Get returns an object whole, ErrNotFound or ErrUnreadable.
	Get(ctx context.Context, name Name) ([]byte, error)
	// List returns names behind after and before to, in their order, at most limit. What it returns may
	// hold a name that no batch has. more says that there are others.
	List(ctx context.Context, after, to Name, limit int) (list []Object, more bool, err error)
	// Remove removes an object, and what is kept of former ones of its name.
	Remove(ctx context.Context, name Name) error
	// Rewrite writes an object in place of one of that name, of which nothing is kept.
	Rewrite(ctx context.Context, name Name, object []byte) error
}

// Range goes through the objects of a time: those received at from or later, before to, and behind
// after. It stops at the first error, of the store or of each.
func Range(ctx context.Context, s Store, from, to time.Time, after Name, each func(Object) error) error {
	return between(ctx, s, max(after, After(from)), After(to), each)
}

// between goes through the objects behind after and before to.
func between(ctx context.Context, s Store, after, to Name, each func(Object) error) error {
	for more := true; more; {
		var list []Object
		var err error
		if list, more, err = s.List(ctx, after, to, page); err != nil {
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

// page is how many objects are listed at once: as many as S3 lists with one request.
const page = 1000
