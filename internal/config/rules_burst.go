// SPDX-License-Identifier: Apache-2.0

package config

import "fmt"

// burstRules make sure that lull writes one burst once.
var burstRules = []Rule{
	{"quiet-max-wait", "quiet <= max wait: an event is never due later than the cap.", checkQuiet},
	{
		"burst-spread",
		"W + burst spread <= quiet: otherwise a burst is written twice.",
		checkBurstSpread,
	},
	{"backoff", "The shortest back-off is not longer than the longest.", checkBackoff},
}

// checkQuiet reports the quiet window, unless the collection overrides only its max wait.
func checkQuiet(c *Config, f *checker) {
	for _, t := range c.timings() {
		if t.Quiet <= t.MaxWait {
			continue
		}
		if t.own.MaxWait != nil && t.own.Quiet == nil {
			f.fault(t.maxWait(), t.MaxWait, "is shorter than the "+t.quiet()+" of "+words(t.Quiet),
				fmt.Sprintf("raise it to at least %s, or set %s.quiet to at most %s", words(t.Quiet), t.path,
					words(t.MaxWait)))
			continue
		}
		f.fault(t.quiet(), t.Quiet, "is longer than the "+t.maxWait()+" of "+words(t.MaxWait),
			fmt.Sprintf("lower it to at most %s, or raise %s to at least %s", words(t.MaxWait), t.maxWait(),
				words(t.Quiet)))
	}
}

// checkBurstSpread keeps promise 3: one sink write per document and burst. It uses the longer
// batching window of the two lanes.
func checkBurstSpread(c *Config, f *checker) {
	l := c.Queues.slowest()
	for _, t := range c.timings() {
		if need := l.Window + c.Queues.BurstSpread; need > t.Quiet {
			f.fault(t.quiet(), t.Quiet, fmt.Sprintf(
				"is less than %s.window + queues.burstSpread = %s: bursts would be written twice", l.path, words(need)),
				fmt.Sprintf("raise it to at least %s, or lower %s.window or queues.burstSpread", words(need), l.both))
		}
	}
}

func checkBackoff(c *Config, f *checker) {
	if c.Retry.BackoffMin > c.Retry.BackoffMax {
		f.fault("retry.backoffMin", c.Retry.BackoffMin, "is longer than the retry.backoffMax of "+
			words(c.Retry.BackoffMax),
			"lower it to at most "+words(c.Retry.BackoffMax)+", or raise retry.backoffMax")
	}
}
