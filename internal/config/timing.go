// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Timing returns the timing of a collection, as package shard uses it.
func (c *Config) Timing(collection shard.Collection) shard.Timing {
	d := c.For(string(collection))
	return shard.Timing{
		Quiet: d.Quiet, MaxWait: d.MaxWait, CapGrace: d.CapGrace, MinInterval: d.MinInterval,
		Leading: d.Leading, Waits: c.Index.WaitingTurns,
	}
}

// Hold is how long a message is held at most if nothing fails. A document that never stops changing
// is held until its cap. A document that was just written is held until minInterval has passed.
func (d Debounce) Hold() time.Duration { return max(d.MaxWait, d.MinInterval) + d.CapGrace }

// LongestHold is the longest Hold of the collections of a sink.
func (c *Config) LongestHold(sink string) time.Duration {
	var longest time.Duration
	for _, t := range c.timings() {
		if t.sink == sink {
			longest = max(longest, t.Hold())
		}
	}
	return longest
}

// LongestFresh is the longest Fresh of all collections. It is the promise that holds for every live
// event.
func (c *Config) LongestFresh() time.Duration {
	var longest time.Duration
	for _, name := range c.knownCollections() {
		longest = max(longest, c.Fresh(name))
	}
	return longest
}

// Recovered is how old a live event of a sink is at most when it is written, after one lost
// invocation or flight (promise 4). It is recovery plus the sink's apply delay. If a window does
// not fit into the queue's visibility, that window is added.
func (c *Config) Recovered(sink string) time.Duration {
	var longest time.Duration
	for _, t := range c.timings() {
		window := c.Queues.Live.Window + t.first()
		if t.sink == sink && window+pollSlack+wakeRounding+2*c.Index.Timeout > c.Queues.Visibility {
			longest = max(longest, window+wakeRounding)
		}
	}
	return longest + c.Recovery + c.Sinks[sink].Capabilities().ApplyDelay
}

// Window is W, the batching window of a lane.
func (q Queues) Window(bulk bool) time.Duration {
	if bulk {
		return q.Bulk.Window
	}
	return q.Live.Window
}

// SupersededLeave reports whether superseded messages may leave their flight, and stay invisible
// for the queue's visibility (ADR 0028). They may not leave if all messages that are expected
// within the visibility are more than a queue may hold.
func (q Queues) SupersededLeave() bool {
	return float64(q.ExpectedRate)*q.Visibility.Seconds() <= float64(q.MaxInFlight)
}

// Expires is the TTL of a row that is committed now, in seconds since 1970. The TTL is the row's
// retention plus ttlExtra.
func (l Lifecycle) Expires(now time.Time) int64 {
	return now.Add(l.RowRetention + l.TTLExtra).Unix()
}

// Fresh is the time from the last change of a burst until its document is in the sink. It holds for
// 99 % of the documents of a collection (docs/design.md, section 3).
func (c *Config) Fresh(collection string) time.Duration {
	return c.For(collection).Quiet + c.Queues.Live.Window + time.Second
}
