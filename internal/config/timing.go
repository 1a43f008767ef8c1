package config

import (
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Timing is For in the terms of the protocol.
func (c *Config) Timing(collection shard.Collection) shard.Timing {
	d := c.For(string(collection))
	return shard.Timing{
		Quiet: d.Quiet, MaxWait: d.MaxWait, CapGrace: d.CapGrace, MinInterval: d.MinInterval,
		Leading: d.Leading, Waits: c.Index.WaitingTurns,
	}
}

// Hold is how long a message is held at most while all is well: until the cap of a document that is
// always changing, or until its pace lets it be written.
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

// LongestFresh is Fresh of the collection with the longest quiet window: the promise for all live
// events together.
func (c *Config) LongestFresh() time.Duration {
	var longest time.Duration
	for _, name := range c.knownCollections() {
		longest = max(longest, c.Fresh(name))
	}
	return longest
}

// Recovered is how old a live event of a sink is at most when it is written, after one lost
// invocation or flight (promise 4). That is recovery, and for a window that outlasts the queue's
// visibility recovery beyond its end.
func (c *Config) Recovered(sink string) time.Duration {
	var longest time.Duration
	for _, t := range c.timings() {
		window := c.Queues.Live.Window + t.first()
		if t.sink == sink && window+pollSlack+wakeRounding+2*c.Index.Timeout > c.Queues.Visibility {
			longest = max(longest, window+wakeRounding)
		}
	}
	return longest + c.Recovery + c.ApplyDelay(sink)
}

// Window is W, the batching window of a lane.
func (c *Config) Window(bulk bool) time.Duration {
	if bulk {
		return c.Queues.Bulk.Window
	}
	return c.Queues.Live.Window
}

// SupersededLeave reports whether superseded messages may leave their flight, and stay invisible
// for the queue's visibility (ADR 0028). They may not if all expected traffic, invisible for that
// time, would exceed what a queue may hold.
func (c *Config) SupersededLeave() bool {
	return float64(c.Queues.ExpectedRate)*c.Queues.Visibility.Seconds() <= float64(c.Queues.MaxInFlight)
}

// Expires is the TTL, in seconds since 1970, of a row that is committed now: retention and then
// ttlExtra.
func (c *Config) Expires(now time.Time) int64 {
	return now.Add(c.Lifecycle.RowRetention + c.Lifecycle.TTLExtra).Unix()
}

// Fresh is how long after its last change a document of a collection is in the sink, at p99
// (docs/design.md, section 3).
func (c *Config) Fresh(collection string) time.Duration {
	return c.For(collection).Quiet + c.Queues.Live.Window + time.Second
}
