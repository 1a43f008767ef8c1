package config

import "time"

// TableHold is how long receive keeps messages away at most, between two tries, while the table
// cannot be reached.
const TableHold = 15 * time.Minute

// spareReceives are the receives of a message's ordinary life: holds and lost flights.
const spareReceives = 10

// Lease returns how long a claim on a document of this sink lasts at least: Ti + G + applyDelay. It
// must outlive the invocation that claims, which the platform may kill late, by a clock that
// differs. It must also outlive every request of that invocation that the sink still applies. An
// unknown name counts as a sink without versions: the longer lease is the safe one.
func (c *Config) Lease(sink string) time.Duration {
	return c.Index.Timeout + c.Index.Guard + c.ApplyDelay(sink)
}

// ApplyDelay returns how long this sink may still apply a request after we hung up.
func (c *Config) ApplyDelay(sink string) time.Duration {
	return c.Sinks[sink].Capabilities().ApplyDelay
}

// Versions reports whether this sink compares the fence itself. An unknown name counts as a sink
// without versions.
func (c *Config) Versions(sink string) bool { return c.Sinks[sink].Capabilities().Versions }

// AmbiguousRetry returns the state machine's first retry after an invocation for this sink whose
// outcome is unknown, in whole seconds: by then the lease of the lost invocation has ended.
func (c *Config) AmbiguousRetry(sink string) time.Duration {
	if c.Flight.AmbiguousRetry > 0 {
		return c.Flight.AmbiguousRetry
	}
	return ceil(c.Lease(sink), time.Second)
}

// MaxReceiveCount is the queue's last resort against a message that kills every invocation. It is
// 10 receives, plus the receives while a sink is away until the dead deadline: 456 by default.
// Refusals and age catch poison long before.
func (c *Config) MaxReceiveCount() int {
	return spareReceives + awayReceives(c.Retry.DeadDeadline)
}

// ceil rounds a duration up to a multiple of unit.
func ceil(d, unit time.Duration) time.Duration {
	if rest := d % unit; rest > 0 {
		return d - rest + unit
	}
	return d
}

// floor rounds a duration down to whole seconds.
func floor(d time.Duration) time.Duration { return d - d%time.Second }
