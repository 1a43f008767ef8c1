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

// Expires is the TTL, in seconds since 1970, of a row that is committed now: retention and then
// ttlExtra.
func (c *Config) Expires(now time.Time) int64 {
	return now.Add(c.Lifecycle.RowRetention + c.Lifecycle.TTLExtra).Unix()
}
