package bench

import (
	"context"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/proof/price"
)

// record is an item of a peer's table.
type record struct {
	exists  bool
	done    bool
	version int
	owner   int64
	until   time.Time // when a lock, or an attempt under way, counts as dead
	due     time.Time
	timer   bool // an execution waits for this document
}

// table is a peer's DynamoDB table: conditional writes, each one request, refused ones billed too.
type table struct {
	w     *World
	bytes int // of an item

	mu    sync.Mutex
	items map[string]record
}

func newTable(w *World, bytes int) *table {
	return &table{w: w, bytes: bytes, items: map[string]record{}}
}

// write lets f change the item; false is a condition that refuses. It returns the item as it is now
// and whether it was written.
func (t *table) write(ctx context.Context, v *fault.Invocation, key string, f func(r *record) bool) (record, bool) {
	t.w.Meter.Decide(ctx, v, fault.Op{Service: fault.Table, Call: "UPDATE", Count: 1})
	if ctx.Err() != nil {
		return record{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.items[key]
	ok := f(&r)
	if ok {
		r.exists = true
		t.items[key] = r
	} else {
		r = t.items[key]
	}
	t.w.Meter.count(func(c *Counts, u *price.Usage) {
		c.RowWrites++
		if !ok {
			c.RowRefused++
		}
		u.WriteUnits += price.WriteUnits(t.bytes)
	})
	return r, ok
}

// read is one consistent read.
func (t *table) read(ctx context.Context, v *fault.Invocation, key string) record {
	t.w.Meter.Decide(ctx, v, fault.Op{Service: fault.Table, Call: "Read", Count: 1})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.w.Meter.count(func(c *Counts, u *price.Usage) {
		c.RowReads++
		u.ReadUnits += price.ReadUnits(t.bytes, true)
	})
	return t.items[key]
}
