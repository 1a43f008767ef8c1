// SPDX-License-Identifier: Apache-2.0

// Package schedule stores events that must not be written before a given time (notbefore). These
// events wait outside the queue, so that they do not delay other events. prune sends each event to
// the queue when the event is due, to the second.
package schedule

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Item is one scheduled event: the unchanged message, and when to send it.
type Item struct {
	ID         string // made from document and order key, so that an event is stored only once
	Doc        shard.DocID
	Key        shard.OrderKey
	NotBefore  time.Time
	Sink       string
	Lane       flight.Lane
	FirstSent  time.Time
	MessageID  string
	Body       string
	Attributes map[string]queue.Attribute
	Unread     error `json:"-"` // why the message can never be read; nil if it can
}

// Store keeps items: bodies in S3, the other fields in the table. It is safe for concurrent use.
type Store interface {
	// Put stores the item and returns nil only after it is durable. An item with the same ID is
	// replaced.
	Put(ctx context.Context, it Item) error
	// Due returns up to limit items with NotBefore <= until, earliest hour first. It also returns
	// the cursor of the next call, which is empty at the end. Due loads the bodies. If the message
	// of an item is gone or cannot be decoded, the item's Unread says why. Such an item does not
	// delay the others.
	Due(ctx context.Context, until time.Time, cursor string, limit int) (items []Item, next string, err error)
	// List returns up to limit items of a document, or of all documents if doc is empty. The items
	// of the earliest hour come first. List leaves out Body and Attributes. A page may be short or
	// even empty before the end: only an empty cursor means the end. An item that was just put may
	// be missing, and one that was just deleted may be in the list.
	List(ctx context.Context, doc shard.DocID, cursor string, limit int) (items []Item, next string, err error)
	// Get returns the item with its message, or false. The read is consistent. If the message is
	// gone, the item's Unread says so. If the message cannot be decoded, Get returns an error.
	Get(ctx context.Context, id string) (Item, bool, error)
	// Delete removes the item. It succeeds if the item does not exist.
	Delete(ctx context.Context, id string) error
}
