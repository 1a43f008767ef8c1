// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/simulation/price"
)

// record is an item of a peer's table.
type record struct {
	exists  bool
	done    bool
	event   Event // the newest event, with its payload if only this table stores the payload
	owner   int64
	until   time.Time // when a lock or an attempt in progress counts as dead
	due     time.Time
	first   time.Time // when the burst began
	timer   bool      // an execution waits for this document
	starter string    // the message that started the execution
}

// table is a peer's DynamoDB table. Each conditional write of the table is one request. Refused
// writes are billed as well.
type table struct {
	w     *World
	bytes int // the size of an item

	mu    sync.Mutex
	items map[string]record
}

func newTable(w *World, bytes int) *table {
	t := &table{w: w, bytes: bytes, items: map[string]record{}}
	w.images = append(w.images, t.image)
	return t
}

// image takes a backup. The returned function restores it.
func (t *table) image() (restore func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	items := maps.Clone(t.items)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.items = items
	}
}

// tries is how often the AWS SDK tries a request by default.
const tries = 3

// request makes a request of a peer with the SDK's number of tries.
func request(ctx context.Context, v *fault.Invocation, service fault.Service, call string, f func()) (err error) {
	for range tries {
		err = v.Do(ctx, fault.Op{Service: service, Call: call, Count: 1}, func(ctx context.Context) error {
			if ctx.Err() == nil {
				f()
			}
			return ctx.Err()
		})
		if err == nil || ctx.Err() != nil || v.Killed() {
			return err
		}
	}
	return err
}

// write lets f change the item. If f returns false, the condition refuses the write. write returns
// the current item, and whether it was written.
func (t *table) write(ctx context.Context, v *fault.Invocation, key string, f func(r *record) bool) (r record, ok bool,
	err error,
) {
	err = request(ctx, v, fault.Table, "UPDATE", func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		r = t.items[key]
		if ok = f(&r); ok {
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
	})
	return r, ok, err
}

// read is one consistent read of an item.
func (t *table) read(ctx context.Context, v *fault.Invocation, key string) (r record, err error) {
	err = request(ctx, v, fault.Table, "Read", func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		r = t.items[key]
		t.w.Meter.count(func(c *Counts, u *price.Usage) {
			c.RowReads++
			u.ReadUnits += price.ReadUnits(t.bytes, true)
		})
	})
	return r, err
}
