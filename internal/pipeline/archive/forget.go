package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/pipeline/mention"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// Forgetter removes a document from an archive. It is safe for concurrent use.
type Forgetter struct {
	Store   Store
	Sources *source.Set
	Skip    func(sink string) bool // reports whether to skip the objects of a sink; nil: skip none
}

// Forgotten is what Forget did, or would do in a dry run.
type Forgotten struct {
	Messages int // removed, because one of their events is about the document
	Unread   []Name
	// Named lists the objects with a message that has the document's id in a part that cannot be
	// decoded. They stay, because the id may be there by chance.
	Named []Name
	// Undecoded counts messages with a part that cannot be decoded and without the id. They
	// stay.
	Undecoded int
}

// Forget removes every message that is about the document. It removes the whole message, because
// the body contains all of its events. After an error the finished removals stay, and Forget may
// be repeated. An object that cannot be read is listed and stays. Forget reads the whole
// archive.
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
	if p, _ := n.Parts(); f.Skip != nil && f.Skip(p.Sink) { // "" if the name is not of the archive
		return nil
	}
	parts, msgs, err := Read(ctx, f.Store, n)
	if errors.Is(err, ErrNotFound) {
		return nil // it has expired
	}
	if err != nil {
		return err
	}
	kept, named := msgs[:0], false
	for _, m := range msgs {
		switch mention.In(f.Sources, parts.Sink, m, doc) {
		case mention.Holds:
			done.Messages++
			continue
		case mention.Named:
			named = true
		case mention.Unclear:
			done.Undecoded++
		case mention.Nothing:
		}
		kept = append(kept, m)
	}
	if named {
		done.Named = append(done.Named, n)
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

// Unreadable is an error about an object that can never be read: lull did not write these bytes.
type Unreadable struct {
	Name Name
	Err  error
}

func (u *Unreadable) Error() string {
	return fmt.Sprintf("object %s of the archive: %v", u.Name, u.Err)
}

// Unwrap returns the cause.
func (u *Unreadable) Unwrap() error { return u.Err }

// Read reads an object. The error is ErrNotFound if it does not exist, and an *Unreadable if a
// retry cannot help.
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

// Size is the amount of data that the archive holds of a time.
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
