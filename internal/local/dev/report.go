package dev

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Report is what a run of `lull dev` did: counters of events unless said.
type Report struct {
	Messages    int        `json:"messages"`
	Events      int        `json:"events"`
	Skipped     int        `json:"skipped"`
	Rejected    int        `json:"rejected"` // refused by receive; part of Dead
	Duplicates  int        `json:"duplicates"`
	Stale       int        `json:"stale"`
	Held        int        `json:"held"` // waited in a flight; overlaps the others
	Superseded  int        `json:"superseded"`
	Written     int        `json:"written"`
	Deleted     int        `json:"deleted"`
	Rewritten   int        `json:"rewritten"` // same payload, later time; part of Written
	Scheduled   int        `json:"scheduled"` // still waiting for their notbefore
	Dead        int        `json:"dead"`
	DeadLetters []DeadLine `json:"dead_letters"`
	Bursts      int        `json:"bursts"`     // as a single-threaded debouncer counts the arrivals
	Flights     int        `json:"flights"`    // executions started by receive
	Turns       int64      `json:"turns"`      // invocations of index
	RowWrites   int64      `json:"row_writes"` // conditional writes, refused ones too
	RowReads    int64      `json:"row_reads"`  // rows read
	SinkCalls   int64      `json:"sink_calls"`
	SinkItems   int64      `json:"sink_items"`
	Freshness   Freshness  `json:"freshness_ms"`
}

// DeadLine is one parked letter.
type DeadLine struct {
	Key       string `json:"key"`
	Reason    string `json:"reason"`
	MessageID string `json:"message_id"`
}

// Freshness is from event sent to write acknowledged by the sink, in milliseconds of the run's own
// time.
type Freshness struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// Check says whether every event ended exactly once.
func (r Report) Check() error {
	sum := r.Skipped + r.Dead + r.Duplicates + r.Stale + r.Superseded + r.Written + r.Deleted + r.Scheduled
	if r.Events != sum {
		return fmt.Errorf(
			"the books do not balance: %d events, but skipped %d + dead %d + duplicates %d + stale %d + superseded "+
				"%d + written %d + deleted %d + scheduled %d = %d",
			r.Events, r.Skipped, r.Dead, r.Duplicates, r.Stale, r.Superseded, r.Written, r.Deleted, r.Scheduled, sum)
	}
	return nil
}

// fill adds what the ledger knows.
func (l *Ledger) fill(r *Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Skipped, r.Dead, r.Duplicates, r.Stale = l.counts[endSkipped], l.counts[endDead], l.counts[endDuplicate],
		l.counts[endStale]
	r.Superseded, r.Written, r.Deleted, r.Scheduled = l.counts[endSuperseded], l.counts[endWritten],
		l.counts[endDeleted], l.counts[endScheduled]
	r.Rewritten, r.Rejected, r.Held, r.Flights = l.rewrite, l.reject, len(l.held), l.flights
	r.Freshness = l.fresh.summary()
	r.Events += l.earlier
}

// summary gives the quantiles; a quantile is the least value that at least that share does not
// exceed.
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

// WriteReport writes the report to a temporary name and renames it.
func WriteReport(path string, r Report) error {
	if r.DeadLetters == nil {
		r.DeadLetters = []DeadLine{}
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	return replaceFile(path, public, func(f *os.File) error {
		_, err := f.Write(append(b, '\n'))
		return err
	})
}

// Who may read a file: what was asked for is for everybody, what a data folder keeps holds
// documents.
const (
	public  fs.FileMode = 0o644
	private fs.FileMode = 0o600
)

// replaceFile lets fill write a temporary file beside path and renames it to path.
func replaceFile(path string, mode fs.FileMode, fill func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the first error is the one to tell
		}
	}()
	if err = fill(f); err == nil {
		err = f.Chmod(mode)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
