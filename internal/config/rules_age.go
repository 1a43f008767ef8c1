// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"time"
)

// maxReceives is the largest receive count that a redrive policy may name.
const maxReceives = 1_000

// ageRules say how much longer each record must be kept than the records that depend on it.
var ageRules = []Rule{
	{
		"dead-letter-retention",
		"Dead-letter retention > queue retention: a dead letter keeps its first send time and must outlive the queue.",
		checkDeadLetterRetention,
	},
	{
		"dead-deadline",
		"Queue retention >= dead deadline + 12h, the longest hold: a message becomes a dead letter before the " +
			"queue drops it.", checkDeadDeadline,
	},
	{
		"dead-deadline-hold",
		"Dead deadline > max wait (or minInterval) + cap grace: no message dies because its document keeps changing.",
		checkDeadlineHold,
	},
	{
		"row-retention",
		"Row retention >= queue retention + dead-letter retention + redrive span + producer lateness: a row outlives " +
			"every message that could resurrect its document.", checkRowRetention,
	},
	{
		"archive",
		"archive.keep <= row retention - producer lateness: an older message cannot be compared with its row.",
		checkArchive,
	},
	{
		"commit-feed",
		"commitFeed needs the stack's own table.",
		func(c *Config, f *checker) {
			if c.CommitFeed && c.Table.Name != "" {
				f.fault("commitFeed", true, "needs the stack's own table, but table.name names "+c.Table.Name,
					"remove commitFeed, give that table a stream with old and new images, and read it yourself "+
						"(docs/commit-feed.md), or remove table.name")
			}
		},
	},
	{"receive-count", "maxReceiveCount = 10, 20 short waits, 90 of 3m12s, and one for each 12m until the dead deadline, is at most 1,000.", checkReceiveCount},
}

// checkDeadLetterRetention compares the retentions of the two queues. SQS counts the retention of a
// dead letter from when its message was first sent.
func checkDeadLetterRetention(c *Config, f *checker) {
	if q := c.Queues; q.DeadLetterRetention <= q.Retention {
		f.fault("queues.deadLetterRetention", q.DeadLetterRetention, "is not longer than the queues.retention of "+
			words(q.Retention),
			"raise it (14d at most), or lower queues.retention below it")
	}
}

// checkDeadDeadline leaves time for one flight, because receive checks the age of a message only
// after its flight.
func checkDeadDeadline(c *Config, f *checker) {
	if need := ceil(c.Retry.DeadDeadline, time.Second) + maxVisibility; c.Queues.Retention < need {
		f.fault("queues.retention", c.Queues.Retention, "is shorter than the retry.deadDeadline of "+
			words(c.Retry.DeadDeadline)+" and the 12h that a flight may hold a message",
			"raise it to at least "+words(need)+", or lower retry.deadDeadline")
	}
}

// checkDeadlineHold reports the dead deadline, because that setting must be far from its default if
// this rule is broken.
func checkDeadlineHold(c *Config, f *checker) {
	for _, t := range c.timings() {
		if hold := t.Hold(); c.Retry.DeadDeadline <= hold {
			f.fault("retry.deadDeadline", c.Retry.DeadDeadline,
				"is not longer than the time that "+c.holds(t)+" and capGrace hold a "+
					"message for, "+words(hold), "raise it to at least "+words(hold+time.Second))
			return
		}
	}
}

// checkRowRetention keeps promise 1: a tombstone outlives every message that could resurrect the
// document (design section 9).
func checkRowRetention(c *Config, f *checker) {
	need := c.Queues.Retention + c.Queues.DeadLetterRetention + c.Lifecycle.RedriveSpan + c.Lifecycle.ProducerLateness
	if c.Lifecycle.RowRetention < need {
		f.fault("lifecycle.rowRetention", c.Lifecycle.RowRetention,
			"is shorter than queues.retention + queues.deadLetterRetention + lifecycle.redriveSpan + "+
				"lifecycle.producerLateness = "+words(need)+": an old message could resurrect a document",
			"raise it to at least "+words(need)+", or lower the others")
	}
}

// checkArchive bounds the age of a message that is replayed. An older message is too old to compare
// with its row (design section 6), and prune may have deleted the tombstone of its document.
func checkArchive(c *Config, f *checker) {
	most := (c.Lifecycle.RowRetention - c.Lifecycle.ProducerLateness).Truncate(day)
	if c.Archive.Keep > most {
		f.fault("archive.keep", c.Archive.Keep, "is longer than lifecycle.rowRetention - lifecycle.producerLateness = "+
			words(c.Lifecycle.RowRetention-c.Lifecycle.ProducerLateness)+": older messages could not be replayed",
			"lower it to at most "+words(most)+", or raise lifecycle.rowRetention")
	}
}

// checkReceiveCount reports the dead deadline, because maxReceiveCount is not a setting and follows
// from the dead deadline.
func checkReceiveCount(c *Config, f *checker) {
	if n := c.Retry.MaxReceiveCount(); n > maxReceives {
		f.fault("retry.deadDeadline", c.Retry.DeadDeadline,
			fmt.Sprintf("needs a maxReceiveCount of %d, but a queue allows only %d", n, maxReceives),
			"lower it to at most "+words(awaySoon*awayLateLeast+(maxReceives-spareReceives-awayGrowing-awaySoon)*awayMostLeast))
	}
}
