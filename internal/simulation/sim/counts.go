// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"time"

	"github.com/lullhq/lull/internal/simulation/price"
)

// Counts are the requests of a stack to AWS services that cost money.
type Counts struct {
	Messages   int              `json:"messages"`
	Events     int              `json:"events"`
	Unsent     int              `json:"unsent"`        // messages that the queue did not accept
	Writes     map[string]int64 `json:"rowWrites"`     // row writes by name, including refused writes
	Refused    int64            `json:"refusedWrites"` // refused row writes; each costs its units like an applied write
	RowsRead   int64            `json:"rowsRead"`
	Requests   int64            `json:"sinkRequests"`
	Items      int64            `json:"sinkItems"`
	Applied    int64            `json:"sinkApplied"`
	Puts       int64            `json:"bucketPuts"`
	Gets       int64            `json:"bucketGets"`
	QueueCalls int64            `json:"queueCalls"`
	// Polls counts ReceiveMessage calls, as the messages arrived and as AWS bills them.
	Polls int64 `json:"polls"`
	// FullPolls is the smallest number of calls for the same batches: one for ten messages or 64
	// KB.
	FullPolls   int64            `json:"fullPolls"`
	Executions  int64            `json:"executions"`
	Standard    int64            `json:"standardExecutions,omitempty"` // Standard executions
	Transitions int64            `json:"transitions"`
	Turns       int64            `json:"turns"`
	Invocations map[string]int64 `json:"invocations"` // by function
	Killed      int64            `json:"killed"`
	Unreachable int64            `json:"unreachable"` // batches for which the table did not answer
	// Blocked counts how often a dead version with an unknown outcome kept older versions out.
	Blocked int64 `json:"blocked"`

	Calls map[string]int64 `json:"-"` // calls to services, by function

	usage price.Usage // usage that no count above covers
}

// Usage returns the counts in billed units of Lambda, DynamoDB, SQS, S3 and Step Functions. A row
// write is one unit, because last_error is cut so that a row never exceeds a unit.
func (c Counts) Usage() price.Usage {
	u := c.usage
	u.WriteUnits, u.ObjectWrites, u.ObjectReads = float64(c.RowWrites()), float64(c.Puts), float64(c.Gets)
	return u
}

// ran bills an invocation of a function with this much memory.
func (c *Counts) ran(name string, megabytes int, took time.Duration) {
	if name == operators {
		return // an operator's command is not a Lambda function
	}
	c.usage.Invocations++
	c.usage.LambdaGBSeconds += price.LambdaGBSeconds(took, megabytes)
}

// queued bills a call to SQS.
func (c *Counts) queued(bytes int) {
	c.QueueCalls++
	c.usage.QueueRequests += price.QueueRequests(bytes)
}

// read bills a read of rows.
func (c *Counts) read(rows int, consistent bool) {
	c.RowsRead += int64(rows)
	c.usage.ReadUnits += float64(rows) * price.ReadUnits(0, consistent)
}

func newCounts() Counts {
	return Counts{Writes: map[string]int64{}, Invocations: map[string]int64{}, Calls: map[string]int64{}}
}

// RowWrites returns the number of all row writes.
func (c Counts) RowWrites() int64 {
	var n int64
	for _, m := range c.Writes {
		n += m
	}
	return n
}

// clone returns a copy of the counts.
func (c Counts) clone() Counts {
	c.Writes, c.Invocations, c.Calls = maps.Clone(c.Writes), maps.Clone(c.Invocations), maps.Clone(c.Calls)
	return c
}
