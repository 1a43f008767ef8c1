// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"io"
	"strings"
	"sync"

	"github.com/lullhq/lull/internal/seam/journal"
)

// Metrics that do not come from notes.
const (
	// ConfigurationErrors counts invocations that the function refuses because of its settings or
	// of the settings of AWS.
	ConfigurationErrors = "ConfigurationErrors"
	Panics              = "Panics"        // a batch or a turn ended in a panic
	InvalidEvents       = "InvalidEvents" // an invocation, or a record of an invocation, that the function cannot read
	TurnsLost           = "TurnsLost"     // a turn ended with an error: the state machine retries the turn
	CanaryPassed        = "CanaryPassed"  // round trips of the canary that ended well
	CanaryFailed        = "CanaryFailed"  // runs of the canary after which the last round trip counts as failed
	CanarySeconds       = "CanarySeconds" // from published to committed, rounded up, of the canary's document
	RowReads            = "RowReads"      // rows that were requested
	RowWrites           = "RowWrites"     // conditional writes, including the refused writes
	RowRefusals         = "RowRefusals"   // refused conditional writes, which DynamoDB charges, too
)

// OldestAge is the metric for the age in seconds of the oldest message in a batch of receive, by
// lane. The metric of SQS omits messages that were received three times or more.
const OldestAge = "OldestAge"

// routine lists the counts that are only fields of a log line, and not metrics. Each metric costs
// $0.30 a month, and neither an alarm nor the dashboard uses these counts. CloudWatch Logs Insights
// can add up these counts.
var routine = map[string]bool{
	RowReads: true, RowWrites: true, RowRefusals: true, Name(journal.RowRefused): true,
	Name(journal.Archived): true, Name(journal.Skipped): true, Name(journal.Admitted): true, Name(journal.Held): true,
	Name(journal.Scheduled): true, Name(journal.Launched): true, Name(journal.Waiting): true,
	Name(journal.LeftFlight): true, Name(journal.Claimed): true, Name(journal.Deleted): true,
	Name(journal.Extended): true, Name(journal.Continued): true, Name(journal.Ended): true,
	Name(journal.EnrichCalled): true, Name(journal.ObjectRead): true, Name(journal.ObjectDone): true,
	Name(journal.Collected): true, Name(journal.Enqueued): true, Name(journal.Sampled): true,
}

// IsMetric reports whether the count with the given name is a metric of CloudWatch.
func IsMetric(name string) bool { return !routine[name] }

// Base contains the fields that every line of a function has.
type Base struct {
	Stack    string
	Sink     string // the sink of notes that name no sink
	Function string
}

// Counters counts notes until they are flushed. The type Counters is safe for concurrent use.
type Counters struct {
	base Base
	out  io.Writer

	mu      sync.Mutex
	tallies map[place]*tally
}

type place struct{ sink, lane string }

// tally contains the counts of one sink and lane.
type tally struct {
	place
	counts map[string]int
	fresh  []int64 // the freshness of each commit, in milliseconds
	oldest int64   // the age of the oldest message, in seconds
	aged   bool    // whether oldest was set
}

var _ journal.Journal = (*Counters)(nil)

// New returns counters that write each line to out with one call. out is the standard output of the
// function.
func New(out io.Writer, base Base) *Counters {
	return &Counters{base: base, out: out, tallies: map[place]*tally{}}
}

// Note counts a note. For some steps, Note adds the Count of the note, and for all other steps 1.
func (c *Counters) Note(n journal.Note) {
	if n.Sink == "" {
		n.Sink = c.base.Sink
	}
	add := 1
	switch n.Step {
	case journal.Received, journal.Extended, journal.TwelveHours, journal.DeadKept, journal.Away, journal.Requeued,
		journal.Sampled, journal.Archived, journal.ArchiveLost, journal.Missed,
		journal.ObjectRead:
		add = n.Count
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.at(place{n.Sink, n.Lane})
	t.counts[Name(n.Step)] += add
	if n.Sent.IsZero() {
		return
	}
	switch age := max(n.At.Sub(n.Sent), 0); n.Step {
	case journal.Committed, journal.Kept:
		t.fresh = append(t.fresh, age.Milliseconds())
	case journal.Received:
		t.oldest, t.aged = max(t.oldest, int64(age.Seconds())), true
	}
}

// Count adds n to a metric of the function's own sink.
func (c *Counters) Count(name string, n int) { c.CountAt(c.base.Sink, name, n) }

// CountAt adds n to a metric of a sink.
func (c *Counters) CountAt(sink, name string, n int) {
	if n == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at(place{sink: sink}).counts[name] += n
}

func (c *Counters) at(p place) *tally {
	t := c.tallies[p]
	if t == nil {
		t = &tally{place: p, counts: map[string]int{}}
		c.tallies[p] = t
	}
	return t
}

// Name returns the name of the metric for a step: the step sink_newer has the metric SinkNewer.
func Name(s journal.Step) string {
	var b strings.Builder
	for word := range strings.SplitSeq(string(s), "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
