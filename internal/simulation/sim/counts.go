package sim

import (
	"maps"
	"time"

	"github.com/lullhq/lull/internal/simulation/price"
)

// Counts are the requests of a stack to its services that cost money.
type Counts struct {
	Messages   int              `json:"messages"`
	Events     int              `json:"events"`
	Unsent     int              `json:"unsent"`        // the queue did not take them
	Writes     map[string]int64 `json:"rowWrites"`     // by name, refused ones too
	Refused    int64            `json:"refusedWrites"` // among the writes: a refusal costs its unit
	RowsRead   int64            `json:"rowsRead"`
	Requests   int64            `json:"sinkRequests"`
	Items      int64            `json:"sinkItems"`
	Applied    int64            `json:"sinkApplied"`
	Puts       int64            `json:"bucketPuts"`
	Gets       int64            `json:"bucketGets"`
	QueueCalls int64            `json:"queueCalls"`
	// the queue calls that are ReceiveMessage, as the messages arrived and as they are billed
	Polls int64 `json:"polls"`
	// the fewest calls for the same batches: ten messages, or 64 KB, each
	FullPolls   int64            `json:"fullPolls"`
	Executions  int64            `json:"executions"`
	Standard    int64            `json:"standardExecutions,omitempty"` // of them; the others are Express
	Transitions int64            `json:"transitions"`
	Turns       int64            `json:"turns"`
	Invocations map[string]int64 `json:"invocations"` // by function
	Killed      int64            `json:"killed"`
	Unreachable int64            `json:"unreachable"` // batches that found no table
	// times that a dead version of unknown outcome kept older ones out
	Blocked int64 `json:"blocked"`

	Calls map[string]int64 `json:"-"` // to services, by function

	usage price.Usage // the usage that no count above covers
}

// Usage is the counts in billed units of Lambda, DynamoDB, SQS, S3 and Step Functions. A write of a
// row is one unit: last_error is cut so that a row never exceeds a unit.
func (c Counts) Usage() price.Usage {
	u := c.usage
	u.WriteUnits, u.ObjectWrites, u.ObjectReads = float64(c.RowWrites()), float64(c.Puts), float64(c.Gets)
	return u
}

// ran bills an invocation of a function with so much memory.
func (c *Counts) ran(name string, megabytes int, took time.Duration) {
	if name == operators {
		return // no function
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

// RowWrites is the number of all row writes.
func (c Counts) RowWrites() int64 {
	var n int64
	for _, m := range c.Writes {
		n += m
	}
	return n
}

// clone is the counts as they are now.
func (c Counts) clone() Counts {
	c.Writes, c.Invocations, c.Calls = maps.Clone(c.Writes), maps.Clone(c.Invocations), maps.Clone(c.Calls)
	return c
}
