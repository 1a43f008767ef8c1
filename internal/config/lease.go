// SPDX-License-Identifier: Apache-2.0

package config

import "time"

// TableHold is the longest time for which receive keeps messages invisible between two tries while
// the table cannot be reached.
const TableHold = 15 * time.Minute

// spareReceives is how often a message may be received for ordinary reasons: holds and lost
// flights.
const spareReceives = 10

// Lease returns how long a claim on a document of this sink lasts at least: Ti + G + applyDelay.
// The lease must outlive the invocation that claims. The platform may kill that invocation late,
// and its clock may differ. The lease must also outlive every request of that invocation that the
// sink still applies. An unknown name counts as a sink without versions: the longer lease is the
// safe one.
func (c *Config) Lease(sink string) time.Duration {
	return c.Index.Timeout + c.Index.Guard + c.Sinks[sink].Capabilities().ApplyDelay
}

// AmbiguousRetry returns the wait before the state machine's first retry if the outcome of an
// invocation for this sink is unknown. It is in whole seconds. After this wait, the lease of the
// lost invocation has ended.
func (c *Config) AmbiguousRetry(sink string) time.Duration {
	if c.Flight.AmbiguousRetry > 0 {
		return c.Flight.AmbiguousRetry
	}
	return ceil(c.Lease(sink), time.Second)
}

// MaxReceiveCount is the queue's last protection against a message that kills every invocation. It
// is 10 receives, plus the receives while a sink is away until the dead deadline: 456 by default.
// The limits for refusals and for age normally stop such a message much earlier.
func (r Retry) MaxReceiveCount() int {
	return spareReceives + awayReceives(r.DeadDeadline)
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
