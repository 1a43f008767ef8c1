// SPDX-License-Identifier: Apache-2.0

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

// Report contains the results of a run of `lull dev`. A counter counts events, unless its comment
// says otherwise.
type Report struct {
	Messages   int `json:"messages"`
	Events     int `json:"events"`
	Skipped    int `json:"skipped"`
	Rejected   int `json:"rejected"` // events that receive refused; part of Dead
	Duplicates int `json:"duplicates"`
	Stale      int `json:"stale"`
	Held       int `json:"held"` // events that waited in a flight; they also have another outcome
	Superseded int `json:"superseded"`
	Written    int `json:"written"`
	Deleted    int `json:"deleted"`
	Unchanged  int `json:"unchanged"` // committed without a write: the sink had these bytes
	// written again with the same payload and a later event time; part of Written
	Rewritten int `json:"rewritten"`
	Scheduled int `json:"scheduled"` // events that still wait for their notbefore
	Dead      int `json:"dead"`
	// messages that made receive read a part of an object; each line of the object is another event
	Read        int        `json:"read"`
	DeadLetters []DeadLine `json:"dead_letters"`
	Bursts      int        `json:"bursts"`     // the number of bursts: see [Debouncer]
	Flights     int        `json:"flights"`    // the number of executions that receive started
	Turns       int64      `json:"turns"`      // the number of invocations of index
	RowWrites   int64      `json:"row_writes"` // the number of conditional writes, including refused writes
	RowReads    int64      `json:"row_reads"`  // the number of rows read
	SinkCalls   int64      `json:"sink_calls"`
	SinkItems   int64      `json:"sink_items"`
	Freshness   Freshness  `json:"freshness_ms"`

	Fetched int `json:"fetched"` // the number of documents that were fetched from their source
	// the number of fetches without a document to write: stale, missing or unavailable
	FetchFailed int `json:"fetch_failed"`

	Enriched     int `json:"enriched"`      // the number of documents to which a service added fields
	EnrichCalls  int `json:"enrich_calls"`  // the number of requests to such services
	EnrichFailed int `json:"enrich_failed"` // the number of requests without a usable answer; part of EnrichCalls
}

// DeadLine is one parked dead letter.
type DeadLine struct {
	Key       string `json:"key"`
	Reason    string `json:"reason"`
	MessageID string `json:"message_id"`
	Detail    string `json:"detail"`          // class, status, field name
	Where     string `json:"where,omitempty"` // where the message is in the input, such as "line 3" or the name of a file
}

// String describes the dead letter on one line: its document or message, its reason, and its place
// in the input.
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

// Freshness is the time from the sending of an event to the commit of its version, in milliseconds
// of the run's clock.
type Freshness struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// Ended returns how many events have an outcome. A dead letter and a scheduled event count as
// outcomes.
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

// Report returns the counters so far. The list of dead letters in the report is empty: the store of
// dead letters has that list.
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

// summary computes the quantiles. For example, P99 is the smallest value that is greater than or
// equal to 99 % of the values.
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

// Write writes the report to a file. The file is replaced atomically.
func (r Report) Write(path string) error {
	return wholefile.Write(path, 0o644, func(f *os.File) error {
		enc := json.NewEncoder(f)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	})
}
