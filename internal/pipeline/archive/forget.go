// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
}

// Mentions are the objects of a page that are about a document.
type Mentions struct {
	Looked  int        // how many objects were read
	Objects []Messages // to remove messages from
	Unread  []Name     // objects that cannot be read, now or later
	// Named lists the objects with a message that has the document's id in a part that cannot be
	// decoded. They stay, because the id may be there by chance.
	Named []Name
	// Undecoded counts messages with a part that cannot be decoded and without the id. They
	// stay.
	Undecoded int
	Next      Name // after which the next page begins, empty at the end
}

// Messages is an object with some messages.
type Messages struct {
	Name     Name
	Messages int // how many have an event about the document
}

// Look reads at most limit objects whose names sort after after, and finds every message that is
// about the document. An object that cannot be read is listed.
func (f Forgetter) Look(ctx context.Context, doc shard.DocID, after Name, limit int) (page Mentions, err error) {
	list, more, err := f.Store.List(ctx, after, "~", limit)
	if err != nil {
		return page, fmt.Errorf("look for %s: %w", doc, err)
	}
	for _, o := range list {
		err := f.look(ctx, doc, o.Name, &page)
		if errors.As(err, new(*Unreadable)) {
			page.Unread, err = append(page.Unread, o.Name), nil
		}
		if err != nil {
			return page, fmt.Errorf("look for %s: %w", doc, err)
		}
		page.Looked++
		if more {
			page.Next = o.Name
		}
	}
	return page, nil
}

func (f Forgetter) look(ctx context.Context, doc shard.DocID, n Name, page *Mentions) error {
	parts, msgs, err := Read(ctx, f.Store, n)
	if err != nil {
		return gone(err)
	}
	about, named := 0, false
	for _, m := range msgs {
		switch mention.In(f.Sources, parts.Sink, m, doc) {
		case mention.Holds:
			about++
		case mention.Named:
			named = true
		case mention.Unclear:
			page.Undecoded++
		case mention.Nothing:
		}
	}
	if about > 0 {
		page.Objects = append(page.Objects, Messages{n, about})
	}
	if named {
		page.Named = append(page.Named, n)
	}
	return nil
}

// Remove removes every message that is about the document from an object. It removes the whole
// message, because the body contains all of its events. It may be repeated.
func (f Forgetter) Remove(ctx context.Context, doc shard.DocID, n Name) error {
	parts, msgs, err := Read(ctx, f.Store, n)
	if err != nil {
		return gone(err)
	}
	kept := slices.DeleteFunc(slices.Clone(msgs), func(m queue.Message) bool {
		return mention.In(f.Sources, parts.Sink, m, doc) == mention.Holds
	})
	switch len(kept) {
	case len(msgs):
		return nil
	case 0:
		return f.Store.Remove(ctx, n)
	}
	object, err := Encode(kept)
	if err != nil {
		return err
	}
	return f.Store.Rewrite(ctx, n, object)
}

// gone ignores that an object does not exist: it has expired.
func gone(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
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
