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

// SupersededLeave reports whether messages behind a newer version may leave their flight, and stay
// invisible for the queue's visibility (ADR 0028): not where all of the expected traffic, invisible
// for so long, would be more than a queue may hold.
func (c *Config) SupersededLeave() bool {
	return float64(c.Queues.ExpectedRate)*c.Queues.Visibility.Seconds() <= float64(c.Queues.MaxInFlight)
}

// Expires is the TTL, in seconds since 1970, of a row that is committed now: retention and then
// ttlExtra.
func (c *Config) Expires(now time.Time) int64 {
	return now.Add(c.Lifecycle.RowRetention + c.Lifecycle.TTLExtra).Unix()
}
