package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// Forgetter takes a document out of an archive. It is safe for concurrent use.
type Forgetter struct {
	Store   Store
	Sources *source.Set
}

// Forgotten is what Forget did, or would do in a dry run.
type Forgotten struct {
	Messages int // removed, because one of their events is about the document
	Unread   []Name
	// Undecoded are messages that the settings decode to nothing: whether they are about the document
	// nobody can say. They stay.
	Undecoded int
}

// Forget removes every message that is about the document: a message goes as a whole, because its
// body holds all of its events. What was done before an error stays done, and it may be repeated.
// An object that cannot be read is named, and stays. Reading the whole archive is what it costs.
func (f Forgetter) Forget(ctx context.Context, doc shard.DocID, dryRun bool) (done Forgotten, err error) {
	err = between(ctx, f.Store, "", "~", func(o Object) error {
		err := f.object(ctx, doc, o.Name, dryRun, &done)
		if errors.As(err, new(*Unreadable)) {
			done.Unread, err = append(done.Unread, o.Name), nil
		}
		return err
	})
	if err != nil {
		return done, fmt.Errorf("forget %s: %w", doc, err)
	}
	return done, nil
}

func (f Forgetter) object(ctx context.Context, doc shard.DocID, n Name, dryRun bool, done *Forgotten) error {
	parts, msgs, err := Read(ctx, f.Store, n)
	if errors.Is(err, ErrNotFound) {
		return nil // it expired meanwhile
	}
	if err != nil {
		return err
	}
	kept := msgs[:0]
	for _, m := range msgs {
		about, undecoded := f.about(parts.Sink, m, doc)
		switch {
		case about:
			done.Messages++
			continue
		case undecoded:
			done.Undecoded++
		}
		kept = append(kept, m)
	}
	switch {
	case len(kept) == len(msgs) || dryRun:
		return nil
	case len(kept) == 0:
		return f.Store.Remove(ctx, n)
	}
	object, err := Encode(kept)
	if err != nil {
		return err
	}
	return f.Store.Rewrite(ctx, n, object)
}

// about reports whether a message has an event about the document, and whether it has one that
// nobody can tell.
func (f Forgetter) about(sink string, m queue.Message, doc shard.DocID) (about, undecoded bool) {
	for _, r := range f.Sources.At(sink).Decode(m) {
		key := r.Event.Doc
		if r.Invalid != nil {
			key = r.Invalid.Doc
		}
		about = about || key == doc
		undecoded = undecoded || key == "" && r.Invalid != nil
	}
	return about, undecoded
}

// Unreadable is an object that cannot be read, now or later: its bytes are not what lull wrote.
type Unreadable struct {
	Name Name
	Err  error
}

func (u *Unreadable) Error() string {
	return fmt.Sprintf("object %s of the archive: %v", u.Name, u.Err)
}

// Unwrap is what is wrong with it.
func (u *Unreadable) Unwrap() error { return u.Err }

// Read reads an object. The error is ErrNotFound where it is gone, and an *Unreadable where trying
// again does not help.
func Read(ctx context.Context, s Store, n Name) (Parts, []queue.Message, error) {
	parts, err := n.Parts()
	if err != nil {
		return parts, nil, &Unreadable{n, err}
	}
	object, err := s.Get(ctx, n)
	if err != nil && !errors.Is(err, ErrUnreadable) {
		return parts, nil, err
	}
	var msgs []queue.Message
	if err == nil {
		msgs, err = Decode(object)
	}
	if err != nil {
		return parts, nil, &Unreadable{n, err}
	}
	return parts, msgs, nil
}

// Size is how much the archive holds of a time.
type Size struct {
	Objects  int       `json:"objects"`
	Messages int       `json:"messages"` // at most: some may have been forgotten
	Bytes    int64     `json:"bytes"`    // packed
	First    time.Time `json:"first_at,omitzero"`
	Last     time.Time `json:"last_at,omitzero"`
}

// Measure adds up the objects of a time, without reading them.
func Measure(ctx context.Context, s Store, from, to time.Time) (size Size, err error) {
	err = Range(ctx, s, from, to, "", func(o Object) error {
		size.Objects++
		size.Bytes += o.Bytes
		if p, err := o.Name.Parts(); err == nil {
			size.Messages += p.Messages
			if size.First.IsZero() {
				size.First = p.Received
			}
			size.Last = p.Received
		}
		return nil
	})
	return size, err
}
