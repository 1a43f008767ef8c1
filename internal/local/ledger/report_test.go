// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
)

func TestTheReportHasExactlyItsFields(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report.json")
	r := Report{DeadLetters: []DeadLine{{
		Key: "content#a", Reason: "rejected", MessageID: "m", Detail: "400", Where: "line 3",
	}}}
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"messages":0,"events":0,"skipped":0,"rejected":0,"duplicates":0,"stale":0,"held":0,"superseded":0,"written":0,"deleted":0,"unchanged":0,"rewritten":0,"scheduled":0,"dead":0,"read":0,` +
		`"dead_letters":[{"key":"content#a","reason":"rejected","message_id":"m","detail":"400","where":"line 3"}],"bursts":0,"flights":0,"turns":0,"row_writes":0,"row_reads":0,"sink_calls":0,"sink_items":0,"freshness_ms":{"p50":0,"p99":0,"max":0},"fetched":0,"fetch_failed":0,"enriched":0,"enrich_calls":0,"enrich_failed":0}`
	var got bytes.Buffer
	if err := json.Compact(&got, b); err != nil || got.String() != want {
		t.Errorf("got  %s\nwant %s (error %v)", got.String(), want, err)
	}
	if err := New(0).Report().Write(path); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); !bytes.Contains(b, []byte(`"dead_letters": []`)) {
		t.Errorf("no dead letters are %s, want an empty list", b)
	}
}

func TestTheCountersAddUp(t *testing.T) {
	t.Parallel()
	r := Report{
		Events: 36, Skipped: 1, Dead: 2, Rejected: 2, Duplicates: 3, Stale: 4, Superseded: 5, Written: 6,
		Rewritten: 6, Held: 9, Deleted: 7, Scheduled: 8,
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	r.Events++
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "37 events") {
		t.Errorf("got %v, want an error that says the sum", err)
	}
}

func TestQuantilesAreTheLeastValueThatTheirShareDoesNotExceed(t *testing.T) {
	t.Parallel()
	h := histogram{}
	if got := h.summary(); got != (Freshness{}) {
		t.Errorf("of nothing: %+v", got)
	}
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	h.add(-time.Second) // clocks differ
	if got, want := h.summary(), (Freshness{P50: 500, P99: 990, Max: 1000}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// SQS reports the time of sending in milliseconds. A message that is sent in the millisecond in
// which a run begins belongs to that run, and not to an earlier run.
func TestAMessageOfTheFirstMillisecondIsOfThisRun(t *testing.T) {
	t.Parallel()
	l := New(0)
	began := time.UnixMilli(1_777_888_800_000)
	l.Resume(began.Add(700 * time.Microsecond))
	l.Sent(began.Add(800*time.Microsecond), 10, 1)
	l.Note(journal.Note{Step: journal.Skipped, Message: "m", Sent: began, At: began.Add(time.Second)})
	if r := l.Report(); r.Check() != nil || r.Events != 1 {
		t.Errorf("got %d events, %v, want the one that was sent", r.Events, r.Check())
	}
}
