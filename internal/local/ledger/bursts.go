package ledger

import (
	"sync"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Debouncer counts bursts as a single-threaded debouncer would see them: arrivals in order,
// versions older than the newest seen ignored, a burst ended by quiet or by maxWait. It is the
// yardstick for sink writes and shares nothing with the protocol. The zero value has seen nothing.
type Debouncer struct {
	mu     sync.Mutex
	docs   map[shard.DocID]burst
	bursts int
}

type burst struct {
	newest      shard.OrderKey
	start, last time.Time
}

// Arrive takes one event sent at t.
func (d *Debouncer) Arrive(doc shard.DocID, k shard.OrderKey, t time.Time, quiet, maxWait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, seen := d.docs[doc]
	if seen && k <= b.newest {
		return
	}
	if d.docs == nil {
		d.docs = map[shard.DocID]burst{}
	}
	if !seen || !t.Before(b.last.Add(quiet)) || !t.Before(b.start.Add(maxWait)) {
		d.bursts++
		b.start = t
	}
	b.newest, b.last = k, t
	d.docs[doc] = b
}

// Bursts is how many bursts have begun.
func (d *Debouncer) Bursts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bursts
}
