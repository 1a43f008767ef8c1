// Package schedule keeps events that are not due yet (notbefore): out of the queue, out of the way
// of what is due before them, and enqueued to the second by prune.
package schedule

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Item is one scheduled event: the message byte for byte, and when to send it.
type Item struct {
	ID         string // of document and order key: storing an event twice stores it once
	Doc        shard.DocID
	Key        shard.OrderKey
	NotBefore  time.Time
	Sink       string
	Lane       flight.Lane
	FirstSent  time.Time
	MessageID  string
	Body       string
	Attributes map[string]queue.Attribute
}

// Store keeps items: bodies in S3, facts in the table. It is safe for concurrent use.
type Store interface {
	// Put stores the item and returns nil only once it is durable. The same ID again replaces it.
	Put(ctx context.Context, it Item) error
	// Due returns up to limit items with NotBefore <= until, earliest hour first, and the cursor of
	// the next call, empty at the end. Bodies are loaded.
	Due(ctx context.Context, until time.Time, cursor string, limit int) (items []Item, next string, err error)
	// List returns up to limit items about a document, or all where it is empty, earliest hour first:
	// without Body and Attributes. It may return fewer, even none, and still a cursor: empty at the
	// end. An item that was just put or deleted may be missing or still be there.
	List(ctx context.Context, doc shard.DocID, cursor string, limit int) (items []Item, next string, err error)
	// Get returns the item with its message, or false. It is read consistently.
	Get(ctx context.Context, id string) (Item, bool, error)
	// Delete removes the item; deleting what is not there is no error.
	Delete(ctx context.Context, id string) error
}
