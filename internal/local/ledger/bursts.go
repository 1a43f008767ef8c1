// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"sync"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Debouncer counts bursts in the simplest possible way: as a single-threaded debouncer that gets
// all events in order. A Debouncer ignores versions that are older than the newest one, and ends a
// burst after quiet or maxWait. Tests compare the number of writes to the sink with this count, so
// Debouncer shares no code with the protocol. The zero value is ready to use.
type Debouncer struct {
	mu     sync.Mutex
	docs   map[shard.DocID]burst
	bursts int
}

type burst struct {
	newest      shard.OrderKey
	start, last time.Time
}

// Arrive adds an event that was sent at t.
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

// Bursts returns how many bursts have begun.
func (d *Debouncer) Bursts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bursts
}
