// Package schedule stores events that must not be written before a given time (notbefore). They
// wait outside the queue, so they do not delay other events. prune sends each to the queue when it
// is due, to the second.
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
	ID         string // from document and order key: storing an event twice stores it once
	Doc        shard.DocID
	Key        shard.OrderKey
	NotBefore  time.Time
	Sink       string
	Lane       flight.Lane
	FirstSent  time.Time
	MessageID  string
	Body       string
	Attributes map[string]queue.Attribute
	Unread     error `json:"-"` // why its message cannot be read, now or later; nil otherwise
}

// Store keeps items: bodies in S3, the other fields in the table. It is safe for concurrent use.
type Store interface {
	// Put stores the item and returns nil only after it is durable. An item with the same ID is
	// replaced.
	Put(ctx context.Context, it Item) error
	// Due returns up to limit items with NotBefore <= until, earliest hour first. It also returns
	// the cursor of the next call, empty at the end. Bodies are loaded. An item whose message is
	// gone or cannot be decoded says so in Unread, and does not keep the others back.
	Due(ctx context.Context, until time.Time, cursor string, limit int) (items []Item, next string, err error)
	// List returns up to limit items of a document, or of all documents if doc is empty, earliest
	// hour first. Body and Attributes are left out. A page may be short or even empty before the
	// end: only an empty cursor means the end. An item that was just put may be missing, and one
	// that was just deleted may be there.
	List(ctx context.Context, doc shard.DocID, cursor string, limit int) (items []Item, next string, err error)
	// Get returns the item with its message, or false. The read is consistent. An item whose message
	// is gone says so in Unread; a message that cannot be decoded is an error.
	Get(ctx context.Context, id string) (Item, bool, error)
	// Delete removes the item. It succeeds if the item does not exist.
	Delete(ctx context.Context, id string) error
}
