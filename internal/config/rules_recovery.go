// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"time"
)

// recoverySlack is the time for polling a queue, starting an execution and waking, together.
const recoverySlack = 2 * time.Second

// flightSpan is how long an ordinary flight with one lost invocation may take. Within this time,
// the flight need not continue as a new execution.
const flightSpan = 240 * time.Second

// recoveryRules bound how late a document is after a lost invocation or flight: at most recovery
// after the end of its collection's own window.
var recoveryRules = []Rule{
	{
		"recovery-flight",
		"V + W + 2s <= recovery, and 2 W + 2 Ti + 8s <= recovery (plus applyDelay without versions): the messages " +
			"of a lost flight are visible again in time.",
		each((*Config).used, checkRecoveryFlight),
	},
	{
		"recovery-invocation",
		"W + 1s + lease + 2s <= recovery (plus applyDelay without versions): a lost invocation is recovered in time. A " +
			"longer ambiguous retry replaces the lease here.", each((*Config).used, checkRecoveryInvocation),
	},
	{
		"flight-span",
		"Unless flight.kind is standard, 2 leases < 240s and < continueAfter: a flight survives a lost invocation inside " +
			"one execution.", each((*Config).used, checkFlightSpan),
	},
	{
		"express-limit", "Unless flight.kind is standard, continueAfter + 2 Ti <= 300s: the last turn ends before Express " +
			"stops the execution.",
		checkExpressLimit,
	},
}

// limit returns the time that a recovery may take, and a text that names it. For a sink without
// versions, the time includes the sink's apply delay.
func (t timing) limit(recovery time.Duration) (time.Duration, string) {
	if t.versions {
		return recovery, "the recovery of " + words(recovery)
	}
	return recovery + t.applyDelay, fmt.Sprintf("recovery + sinks.%s.applyDelay = %s", t.sink,
		words(recovery+t.applyDelay))
}

func raiseRecovery(to time.Duration) string { return "raise recovery to at least " + words(to) }

// used returns one timing of every sink that a collection writes to.
func (c *Config) used() (all []timing) {
	for _, t := range c.timings() {
		if !slices.ContainsFunc(all, func(one timing) bool { return one.sink == t.sink }) {
			all = append(all, t)
		}
	}
	return all
}

// checkRecoveryFlight makes two checks. The first is for messages with the queue's visibility. The
// second is for messages that wait longer, whose visibility receive extended.
func checkRecoveryFlight(c *Config, f *checker, t timing) {
	l := c.Queues.slowest()
	limit, says := t.limit(c.Recovery)
	if need := c.Queues.Visibility + l.Window + recoverySlack; need > limit {
		f.fault("queues.visibility", c.Queues.Visibility, fmt.Sprintf(
			"+ %s.window + 2s = %s is more than %s: a lost flight would not be recovered in time", l.path, words(need), says),
			fmt.Sprintf("lower it or %s.window by %s together, or %s", l.both, words(need-limit),
				raiseRecovery(c.Recovery+need-limit)))
	}
	if need := c.Index.Extended(l.Window) + l.Window + recoverySlack; need > limit {
		f.fault("index.timeout", c.Index.Timeout, fmt.Sprintf(
			"x 2 + 2 x %s.window + 8s = %s is more than %s: a lost flight with a long window would not be recovered in time",
			l.path, words(need), says),
			fmt.Sprintf("lower it, or %s.window, by %s, or %s", l.both, words(ceil((need-limit)/2, time.Second)),
				raiseRecovery(c.Recovery+need-limit)))
	}
}

// checkRecoveryInvocation checks the later of two times: the end of the lease, and the state
// machine's retry.
func checkRecoveryInvocation(c *Config, f *checker, t timing) {
	l := c.Queues.slowest()
	again, name, setting := t.lease, "the lease", "index.timeout"
	value := any(c.Index.Timeout)
	if t.retry > ceil(t.lease, time.Second) {
		again, name, setting, value = t.retry, "flight.ambiguousRetry", "flight.ambiguousRetry", t.retry
	}
	need := l.Window + wakeRounding + again + recoverySlack
	limit, says := t.limit(c.Recovery)
	if need <= limit {
		return
	}
	f.fault(setting, value, fmt.Sprintf(
		"%s.window + 1s + %s of %s + 2s = %s is more than %s: a lost invocation would not be recovered in time", l.path,
		name, words(again), words(need), says),
		fmt.Sprintf("lower %s or %s.window by %s together, or %s", shorterBy(name), l.both, words(need-limit),
			raiseRecovery(c.Recovery+need-limit)))
}

// shorterBy names the settings that make a lease or a retry shorter.
func shorterBy(name string) string {
	if name == "the lease" {
		return "the lease (index.timeout, index.guard)"
	}
	return name
}

// checkFlightSpan leaves time for two leases: the lease of a lost invocation, and the lease of the
// next claim.
func checkFlightSpan(c *Config, f *checker, t timing) {
	if c.Flight.Kind == FlightStandard {
		return
	}
	limit := min(flightSpan, c.Flight.ContinueAfter)
	if need := 2 * t.lease; need >= limit {
		f.fault("flight.continueAfter", c.Flight.ContinueAfter, fmt.Sprintf(
			"is not more than 2 leases of sinks.%s of %s = %s; at most 240s of it count", t.sink, words(t.lease), words(need)),
			fmt.Sprintf("raise it, or lower index.timeout, index.guard or sinks.%s.applyDelay by more than %s, or set "+
				"flight.kind to standard", t.sink, words((need-limit)/2)))
	}
}

func checkExpressLimit(c *Config, f *checker) {
	if c.Flight.Kind == FlightStandard {
		return
	}
	if need := c.Flight.ContinueAfter + 2*c.Index.Timeout; need > expressLimit {
		f.fault("flight.continueAfter", c.Flight.ContinueAfter, "+ 2 x index.timeout = "+words(need)+
			" is more than the 300s that an Express execution may take",
			"lower it to at most "+words(max(expressLimit-2*c.Index.Timeout, 0))+
				", lower index.timeout, or set flight.kind to standard")
	}
}
