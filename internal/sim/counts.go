package sim

import "time"

// Counts say what a stack asked of its services: what costs money.
type Counts struct {
	Messages    int              `json:"messages"`
	Events      int              `json:"events"`
	Unsent      int              `json:"unsent"`        // the queue did not take them
	Writes      map[string]int64 `json:"rowWrites"`     // by name, refused ones too
	Refused     int64            `json:"refusedWrites"` // among the writes: a refusal costs its unit
	ReadHalves  int64            `json:"rowReadHalves"` // half read units: a consistent read is two
	Requests    int64            `json:"sinkRequests"`
	Items       int64            `json:"sinkItems"`
	Applied     int64            `json:"sinkApplied"`
	Puts        int64            `json:"bucketPuts"`
	Gets        int64            `json:"bucketGets"`
	QueueCalls  int64            `json:"queueCalls"`
	Executions  int64            `json:"executions"`
	Transitions int64            `json:"transitions"`
	Turns       int64            `json:"turns"`
	Invocations map[string]int64 `json:"invocations"` // by function
	Killed      int64            `json:"killed"`
	Unreachable int64            `json:"unreachable"` // batches that found no table
	Blocked     int64            `json:"blocked"`     // times that a dead version of unknown outcome kept older ones out

	Busy map[string]time.Duration `json:"-"` // how long the functions ran
}

func newCounts() Counts {
	return Counts{Writes: map[string]int64{}, Invocations: map[string]int64{}, Busy: map[string]time.Duration{}}
}

// RowWrites is all of them.
func (c Counts) RowWrites() int64 {
	var n int64
	for _, m := range c.Writes {
		n += m
	}
	return n
}
