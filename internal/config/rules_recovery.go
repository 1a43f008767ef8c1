package config

import (
	"fmt"
	"time"
)

// recovery is promise 4: fresh within a minute after one lost invocation or flight. A sink without
// versions adds its applyDelay.
const recovery = time.Minute

// recoverySlack is what polling, starting and waking take together.
const recoverySlack = 2 * time.Second

// flightSpan is how long a common flight with one lost invocation may take, so that it need not
// continue as a new execution.
const flightSpan = 240 * time.Second

// recoveryRules keep a document fresh after a loss.
var recoveryRules = []Rule{
	{
		"recovery-flight",
		"V + W + quiet + 2s <= 60s (plus applyDelay without versions): a lost flight is recovered within a minute.",
		checkRecoveryFlight,
	},
	{
		"recovery-invocation",
		"W + max wait + 1s + lease + 2s <= 60s (plus applyDelay without versions): a lost invocation is recovered " +
			"within a minute. A longer ambiguous retry counts in place of the lease.", checkRecoveryInvocation,
	},
	{
		"flight-span",
		"max wait + 2 leases < 240s and < continueAfter: a flight survives a lost invocation inside one execution.",
		checkFlightSpan,
	},
	{
		"express-limit", "Unless flight.kind is standard, continueAfter + 2 Ti <= 300s: the last turn ends before Express stops the execution.",
		checkExpressLimit,
	},
}

// limit returns the minute, longer where the sink has no versions, and says so.
func (t timing) limit() (time.Duration, string) {
	if t.versions {
		return recovery, words(recovery)
	}
	return recovery + t.applyDelay, fmt.Sprintf("60s + sinks.%s.applyDelay = %s", t.sink, words(recovery+t.applyDelay))
}

// checkRecoveryFlight is the first of the two formulas of design section 12 that keep promise 4.
func checkRecoveryFlight(c *Config, f *checker) {
	l := c.slowest()
	for _, t := range c.timings() {
		need := c.Queues.Visibility + l.Window + t.Quiet + recoverySlack
		limit, says := t.limit()
		if need <= limit {
			continue
		}
		problem := fmt.Sprintf(
			"queues.visibility + %s.window + %s + 2s = %s is more than %s: a lost flight would not be recovered in time", l.path, t.quiet(), words(need), says)
		setting, value, others := "queues.visibility", c.Queues.Visibility, t.quiet()
		// Blame the collection's own setting where there is one, because others share the general
		// one.
		if t.own.Quiet != nil {
			setting, value, others = t.quiet(), t.Quiet, "queues.visibility"
		}
		f.fault(setting, value, problem, fmt.Sprintf("lower it, %s or %s.window by %s together", others, l.both,
			words(need-limit)))
	}
}

// checkRecoveryInvocation is the second. Where the state machine retries later than the lease ends,
// the retry counts.
func checkRecoveryInvocation(c *Config, f *checker) {
	l := c.slowest()
	for _, t := range c.timings() {
		again, name := t.lease, "the lease"
		if t.retry > ceil(t.lease, time.Second) {
			again, name = t.retry, "flight.ambiguousRetry"
		}
		need := l.Window + t.MaxWait + wakeRounding + again + recoverySlack
		limit, says := t.limit()
		if need <= limit {
			continue
		}
		f.fault(t.maxWait(), t.MaxWait,
			fmt.Sprintf(
				"%s.window + %s + 1s + %s of %s + 2s = %s is more than %s: a lost invocation would not be recovered "+
					"in time", l.path, t.maxWait(), name, words(again), words(need), says),
			fmt.Sprintf("lower it, %s.window or %s by %s together", l.both, shorterBy(name), words(need-limit)))
	}
}

// shorterBy names the settings that make a lease or a retry shorter.
func shorterBy(name string) string {
	if name == "the lease" {
		return "the lease (index.timeout, index.guard)"
	}
	return name
}

// checkFlightSpan leaves room for two leases: that of a lost invocation, and that of the next
// claim.
func checkFlightSpan(c *Config, f *checker) {
	limit := min(flightSpan, c.Flight.ContinueAfter)
	for _, t := range c.timings() {
		if need := t.MaxWait + 2*t.lease; need >= limit {
			f.fault(t.maxWait(), t.MaxWait, fmt.Sprintf("+ 2 leases of sinks.%s of %s = %s is not less than %s", t.sink,
				words(t.lease), words(need), words(limit)),
				fmt.Sprintf(
					"lower it, or twice index.timeout, index.guard or sinks.%s.applyDelay, by more than %s; "+
						"flight.continueAfter counts up to 240s", t.sink, words(need-limit)))
		}
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
