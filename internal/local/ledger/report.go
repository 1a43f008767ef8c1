package ledger

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/wholefile"
)

// Report has the results of a `lull dev` run. Counters count events unless noted.
type Report struct {
	Messages    int        `json:"messages"`
	Events      int        `json:"events"`
	Skipped     int        `json:"skipped"`
	Rejected    int        `json:"rejected"` // refused by receive; part of Dead
	Duplicates  int        `json:"duplicates"`
	Stale       int        `json:"stale"`
	Held        int        `json:"held"` // waited in a flight; overlaps with the others
	Superseded  int        `json:"superseded"`
	Written     int        `json:"written"`
	Deleted     int        `json:"deleted"`
	Unchanged   int        `json:"unchanged"` // committed without a write: the sink had these bytes
	Rewritten   int        `json:"rewritten"` // same payload, later time; part of Written
	Scheduled   int        `json:"scheduled"` // still waiting for their notbefore
	Dead        int        `json:"dead"`
	Read        int        `json:"read"` // parts of objects that were read; their lines are events themselves
	DeadLetters []DeadLine `json:"dead_letters"`
	Bursts      int        `json:"bursts"`     // as a single-threaded debouncer counts them
	Flights     int        `json:"flights"`    // executions started by receive
	Turns       int64      `json:"turns"`      // invocations of index
	RowWrites   int64      `json:"row_writes"` // conditional writes, including refused ones
	RowReads    int64      `json:"row_reads"`  // rows read
	SinkCalls   int64      `json:"sink_calls"`
	SinkItems   int64      `json:"sink_items"`
	Freshness   Freshness  `json:"freshness_ms"`

	Fetched     int `json:"fetched"`      // documents that were fetched from their source
	FetchFailed int `json:"fetch_failed"` // fetches that returned nothing to write: stale, missing, away

	Enriched     int `json:"enriched"`      // documents that a service added fields to
	EnrichCalls  int `json:"enrich_calls"`  // requests to such services
	EnrichFailed int `json:"enrich_failed"` // requests without a usable answer; part of EnrichCalls
}

// DeadLine is one parked dead letter.
type DeadLine struct {
	Key       string `json:"key"`
	Reason    string `json:"reason"`
	MessageID string `json:"message_id"`
	Detail    string `json:"detail"`          // class, status, field name
	Where     string `json:"where,omitempty"` // in the input: "line 3", or a file of the folder
}

// String writes the dead letter on one line: its document or message, its reason, and its place.
func (d DeadLine) String() string {
	s := cmp.Or(d.Key, "message "+d.MessageID) + ": " + d.Reason
	if d.Detail != "" {
		s += ": " + d.Detail
	}
	if d.Where != "" {
		s += " (" + d.Where + ")"
	}
	return s
}

// Freshness is the time from an event's sending to the sink's answer, in milliseconds of the run's
// clock.
type Freshness struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// Ended is how many events have an outcome, including dead letters and scheduled events.
func (r Report) Ended() int {
	return r.Skipped + r.Dead + r.Duplicates + r.Stale + r.Superseded + r.Written + r.Deleted + r.Unchanged +
		r.Scheduled + r.Read
}

// Check returns an error unless every event has exactly one outcome.
func (r Report) Check() error {
	if sum := r.Ended(); r.Events != sum {
		return fmt.Errorf(
			"the counters do not add up: %d events, but skipped %d + dead %d + duplicates %d + stale %d + superseded "+
				"%d + written %d + deleted %d + unchanged %d + scheduled %d + read %d = %d",
			r.Events, r.Skipped, r.Dead, r.Duplicates, r.Stale, r.Superseded, r.Written, r.Deleted, r.Unchanged,
			r.Scheduled, r.Read, sum)
	}
	return nil
}

// Report returns the counts so far. It has no dead letters, because their store lists them.
func (l *Ledger) Report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Report{
		Messages: l.messages, Events: l.events, Skipped: l.counts[endSkipped], Rejected: l.reject,
		Duplicates: l.counts[endDuplicate], Stale: l.counts[endStale], Held: len(l.held),
		Superseded: l.counts[endSuperseded], Written: l.counts[endWritten], Deleted: l.counts[endDeleted],
		Unchanged: l.counts[endUnchanged],
		Rewritten: l.rewrite, Scheduled: l.counts[endScheduled], Dead: l.counts[endDead], Read: l.counts[endRead],
		DeadLetters: []DeadLine{},
		Bursts:      l.Bursts.Bursts(), Flights: l.flights, Turns: l.Meter.Turns.Load(),
		RowWrites: l.Meter.RowWrites.Load(), RowReads: l.Meter.RowReads.Load(),
		SinkCalls: l.Meter.SinkCalls.Load(), SinkItems: l.Meter.SinkItems.Load(), Freshness: l.fresh.summary(),
		Fetched: l.steps[journal.Fetched], FetchFailed: l.steps[journal.FetchFailed],
		Enriched: l.steps[journal.Enriched], EnrichCalls: l.steps[journal.EnrichCalled],
		EnrichFailed: l.steps[journal.EnrichFailed],
	}
}

// summary computes the quantiles. A quantile is the least value that at least this share of the
// values does not exceed.
func (h histogram) summary() Freshness {
	total := 0
	for _, n := range h {
		total += n
	}
	if total == 0 {
		return Freshness{}
	}
	values := slices.Sorted(maps.Keys(h))
	at := func(percent int) int64 {
		need := max((total*percent+99)/100, 1)
		for _, v := range values {
			if need -= h[v]; need <= 0 {
				return v
			}
		}
		return values[len(values)-1]
	}
	return Freshness{P50: at(50), P99: at(99), Max: values[len(values)-1]}
}

// Write writes the report to a file, atomically.
func (r Report) Write(path string) error {
	return wholefile.Write(path, 0o644, func(f *os.File) error {
		enc := json.NewEncoder(f)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	})
}
