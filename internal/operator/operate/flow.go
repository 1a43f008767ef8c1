// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/shard"
)

// Flow says how a stack keeps up: how fast events come, how fresh documents were, and how long the
// oldest event waits.
type Flow struct {
	Span    time.Duration `json:"span_ns"` // the time up to now that the rates and the freshness cover
	In      float64       `json:"in"`      // events a second
	Written float64       `json:"written"` // documents a second that were written or deleted
	// P50 and P99 are percentiles of the time from the sending of an event to the sink's answer. They
	// are 0 if nothing was written.
	P50 time.Duration `json:"p50_ns,omitempty"`
	P99 time.Duration `json:"p99_ns,omitempty"`
	// Oldest is when the oldest message in a live queue was sent. It is zero if the queues are empty.
	Oldest time.Time `json:"oldest_at,omitzero"`
	// Promise is how soon after its last change a document is written, for the slowest collection.
	Promise time.Duration `json:"promise_ns"`
	// Late is how old the oldest message may become in a healthy stack, if its document changes again
	// and again.
	Late    time.Duration `json:"late_ns"`
	Unknown string        `json:"unknown,omitempty"` // why only Promise and Late are known
}

// flow measures the stack, if it can be measured. A stack that cannot be measured still has a
// status.
func (o *reporter) flow(ctx context.Context) *Flow {
	if o.Flow == nil {
		return nil
	}
	f, err := o.Flow(ctx)
	if err != nil {
		f = Flow{Unknown: err.Error()}
	}
	f.Promise = o.Config.LongestFresh()
	for _, name := range o.sinks() {
		f.Late = max(f.Late, o.Config.LongestHold(name)+o.Config.Queues.Live.Window+time.Second)
	}
	return &f
}

// unhealthySince returns about when the circuit breaker of a health row first opened. The row does
// not record that time. So it is the end of the present level, minus the times of all levels, but
// not before the sink was last healthy. It is zero if the circuit breaker is closed.
func unhealthySince(retry config.Retry, health shard.Row) time.Time {
	if health.OpenUntil == 0 {
		return time.Time{}
	}
	began := health.OpenUntil
	for level := int64(1); level <= health.Level && began > health.LastWrite; level++ {
		began = began.Add(-retry.OpenFor(level))
	}
	return max(began, health.LastWrite).Time()
}
