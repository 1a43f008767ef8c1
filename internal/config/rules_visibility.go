// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"time"
)

// pollSlack is how much of a message's visibility may have passed before receive starts, in
// addition to the window. The visibility starts at the poll of the queue, but receive knows only
// when it was invoked. Design section 7: visibleUntil = invocation start - W - 5 s + V.
const pollSlack = 5 * time.Second

// wakeRounding is the longest delay of a turn by rounding its time up to whole seconds.
const wakeRounding = time.Second

// sinkMargin is the part of index's time-out that is reserved for commits and deletions after a
// call to the sink.
const sinkMargin = 2 * time.Second

// smallBatch is the largest batch that an event source mapping accepts without a batching window.
const smallBatch = 10

// visibilityRules keep a message invisible while a function works on it.
var visibilityRules = []Rule{
	{
		"batch-window", "A batch of more than 10 needs a window of at least 1s: the mapping demands it.",
		checkBatchWindow,
	},
	{
		"visibility-receive",
		"V >= 6 Tr + W: the mapping may retry a throttled invocation before the messages are visible again.",
		checkVisibilityReceive,
	},
	{
		"visibility-timeout", "Tr <= V and Ti <= V: a message is invisible while lull works on it; the mapping refuses less.",
		checkVisibilityTimeout,
	},
	{"sink-deadline", "The sink deadline + 2s < Ti: after the sink's answer, there is time to commit.", checkSinkDeadline},
	{
		"ambiguous-retry", "The first ambiguous retry >= the lease: by then the lease of a lost invocation has ended.",
		each((*Config).namedSinks, checkAmbiguousRetry),
	},
}

func checkBatchWindow(c *Config, f *checker) {
	for _, l := range c.Queues.lanes() {
		if l.Batch > smallBatch && l.Window < time.Second {
			f.fault(l.path+".window", l.Window, fmt.Sprintf("is less than 1s with batches of %d", l.Batch),
				fmt.Sprintf("raise it to at least 1s, or lower %s.batch to at most %d", l.path, smallBatch))
		}
	}
}

// checkVisibilityReceive checks the visibility that AWS recommends for a queue with an event source
// mapping: six times the function's time-out.
func checkVisibilityReceive(c *Config, f *checker) {
	l := c.Queues.slowest()
	need := 6*c.Receive.Timeout + l.Window
	if c.Queues.Visibility >= need {
		return
	}
	var lower []string // the fixes that change only the time-out or only the window
	if most := floor((c.Queues.Visibility - l.Window) / 6); most >= time.Second {
		lower = append(lower, "lower receive.timeout to at most "+words(most))
	}
	if most := c.Queues.Visibility - 6*c.Receive.Timeout; most >= 0 {
		lower = append(lower, fmt.Sprintf("lower %s.window to at most %s", l.both, words(most)))
	}
	if len(lower) == 0 {
		lower = []string{fmt.Sprintf("lower receive.timeout and %s.window", l.both)}
	}
	f.fault("queues.visibility", c.Queues.Visibility,
		fmt.Sprintf("is less than 6 x receive.timeout + %s.window = %s", l.path, words(need)),
		c.raiseVisibility(need)+strings.Join(lower, ", or "))
}

func checkVisibilityTimeout(c *Config, f *checker) {
	for _, t := range []struct {
		setting string
		timeout time.Duration
	}{{"receive.timeout", c.Receive.Timeout}, {"index.timeout", c.Index.Timeout}} {
		if t.timeout > c.Queues.Visibility {
			f.fault(t.setting, t.timeout, "is more than the queues.visibility of "+words(c.Queues.Visibility),
				"lower it to at most "+words(c.Queues.Visibility)+", or raise queues.visibility")
		}
	}
}

// raiseVisibility advises to raise the visibility to the value that is needed. It returns "" if
// that visibility is too long to recover a lost flight in time.
func (c *Config) raiseVisibility(need time.Duration) string {
	whole := ceil(need, time.Second)
	for _, t := range c.timings() {
		if limit, _ := t.limit(c.Recovery); whole+c.Queues.slowest().Window+recoverySlack > limit {
			return ""
		}
	}
	return "raise queues.visibility to at least " + words(whole) + ", or "
}

// checkSinkDeadline uses the margin that package index keeps: both are 2 s.
func checkSinkDeadline(c *Config, f *checker) {
	if c.Index.SinkDeadline+sinkMargin >= c.Index.Timeout {
		f.fault("index.sinkDeadline", c.Index.SinkDeadline,
			"leaves less than 2s of the index.timeout of "+words(c.Index.Timeout)+" to commit",
			fmt.Sprintf("lower it below %s, or raise index.timeout to more than %s",
				words(max(c.Index.Timeout-sinkMargin, 0)), words(c.Index.SinkDeadline+sinkMargin)))
	}
}

// checkAmbiguousRetry compares the retry with the lease of one sink. Each sink has its own lease,
// but all sinks share the setting.
func checkAmbiguousRetry(c *Config, f *checker, s namedSink) {
	if retry, lease := c.AmbiguousRetry(s.name), c.Lease(s.name); retry < lease {
		f.fault("flight.ambiguousRetry", retry, fmt.Sprintf(
			"is less than the lease of %s, %s: the retry would find the document leased by the lost invocation",
			s.path, words(lease)),
			"remove it, or raise it to at least "+words(ceil(lease, time.Second)))
	}
}
