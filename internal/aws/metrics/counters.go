package metrics

import (
	"io"
	"strings"
	"sync"

	"github.com/lullhq/lull/internal/seam/journal"
)

// These metrics do not come from notes.
const (
	// ConfigurationErrors counts starts with settings that the function refuses: it does nothing
	// until they are fixed.
	ConfigurationErrors = "ConfigurationErrors"
	Panics              = "Panics"        // a batch or a turn ended in a panic
	InvalidEvents       = "InvalidEvents" // an invocation, or a record of it, that the function cannot read
	TurnsLost           = "TurnsLost"     // a turn ended in an error: the state machine tries it again
	RowReads            = "RowReads"      // rows requested
	RowWrites           = "RowWrites"     // conditional writes, including the refused writes
	RowRefusals         = "RowRefusals"   // conditional writes refused: each costs its unit, too
)

// OldestAge is how old the oldest message of a batch of receive was, in seconds, by lane. SQS's own
// metric leaves out messages that were received three times or more.
const OldestAge = "OldestAge"

// routine are the counts that are only fields of a line, not metrics. Each metric costs $0.30 a
// month, and neither an alarm nor the dashboard uses these counts. CloudWatch Logs Insights adds
// them up.
var routine = map[string]bool{
	RowReads: true, RowWrites: true, RowRefusals: true, Name(journal.RowRefused): true,
	Name(journal.Archived): true, Name(journal.Skipped): true, Name(journal.Admitted): true, Name(journal.Held): true,
	Name(journal.Scheduled): true, Name(journal.Launched): true, Name(journal.Waiting): true,
	Name(journal.LeftFlight): true, Name(journal.Claimed): true, Name(journal.Deleted): true,
	Name(journal.Extended): true, Name(journal.Continued): true, Name(journal.Ended): true,
	Name(journal.EnrichCalled): true, Name(journal.ObjectRead): true, Name(journal.ObjectDone): true,
	Name(journal.Collected): true, Name(journal.Enqueued): true, Name(journal.Sampled): true,
}

// IsMetric reports whether the count of that name is a metric of CloudWatch.
func IsMetric(name string) bool { return !routine[name] }

// Base holds the fields that every line of a function has.
type Base struct {
	Stack    string
	Sink     string // used if a note names no sink
	Function string
}

// Counters counts notes until they are flushed. It is safe for concurrent use.
type Counters struct {
	base Base
	out  io.Writer

	mu      sync.Mutex
	tallies map[place]*tally
}

type place struct{ sink, lane string }

// tally holds the counts of one sink and lane.
type tally struct {
	counts map[string]int
	fresh  []int64 // milliseconds
	oldest int64   // seconds
	aged   bool    // whether oldest was set
}

var _ journal.Journal = (*Counters)(nil)

// New returns counters that write each line to out in one call. out is the function's standard
// output.
func New(out io.Writer, base Base) *Counters {
	return &Counters{base: base, out: out, tallies: map[place]*tally{}}
}

// Note counts the note: by its Count if the step counts things, otherwise as one.
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

// Count adds to a metric of the function's own sink.
func (c *Counters) Count(name string, n int) {
	if n == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at(place{sink: c.base.Sink}).counts[name] += n
}

func (c *Counters) at(p place) *tally {
	t := c.tallies[p]
	if t == nil {
		t = &tally{counts: map[string]int{}}
		c.tallies[p] = t
	}
	return t
}

// Name is the metric of a step: sink_newer is SinkNewer.
func Name(s journal.Step) string {
	var b strings.Builder
	for word := range strings.SplitSeq(string(s), "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
