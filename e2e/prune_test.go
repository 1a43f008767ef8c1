// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/shard"
)

// Only the rule starts prune in this test. prune deletes the row that is older than the retention,
// and no other row. It enqueues the scheduled event that falls due, at the right second. It does
// not touch the event that is due later.
//
// Rows are kept for thirty days, and prune scans them once a day. So the test makes the row older
// and starts a new scan. It changes nothing else.
func TestPruneCollectsAndEnqueuesByItsRule(t *testing.T) {
	s := express(t)
	c := s.Collection("prune")
	old, fresh, deleted := ground.Key(c, "old"), ground.Key(c, "fresh"), ground.Key(c, "deleted")
	s.Direct(t,
		ground.Event{Collection: c, ID: "old", Version: 1}, ground.Event{Collection: c, ID: "fresh", Version: 1},
		ground.Event{Collection: c, ID: "deleted", Version: 1, Delete: true},
	)
	for _, key := range []shard.DocID{old, fresh, deleted} {
		s.Committed(t, key, 1)
	}
	s.Drained(t)

	// An event for next week is stored as a scheduled event, and not held in a flight.
	before := s.Counts(t)
	later := ground.Event{Collection: c, ID: "later", Version: 2, NotBefore: time.Now().Add(7 * 24 * time.Hour)}
	s.Direct(t, later)
	s.Counted(t, before, "Scheduled", 1)
	s.Drained(t)
	if row := s.Row(t, ground.Key(c, "later")); row.Exists() {
		t.Errorf("an event that is not due has a row: %+v", row)
	}
	// An event that was stored a week ago falls due in a moment.
	due := time.Now().Add(20 * time.Second)
	s.Store(t, ground.Event{Collection: c, ID: "due", Version: 3, NotBefore: due})

	s.PruneRule(t, false)
	// The rows are older than their retention, but the table's own TTL does not delete them yet.
	aged := s.Config.Lifecycle.RowRetention + 3*24*time.Hour
	s.Age(t, old, aged)
	s.Age(t, deleted, aged)
	s.ForgetPass(t)
	s.PruneRule(t, true)

	s.Counted(t, before, "Enqueued", 1)
	s.Counted(t, before, "Collected", 2)
	for key, want := range map[shard.DocID]bool{old: false, deleted: false, fresh: true} {
		if row := s.Row(t, key); row.Exists() != want {
			t.Errorf("%s: its row is there: %t, want %t", key, row.Exists(), want)
		}
	}
	row := s.Committed(t, ground.Key(c, "due"), 3)
	if at := row.LastWrite.Time(); at.Before(due) {
		t.Errorf("the scheduled event was written at %s, before its time %s", at, due)
	}
	s.Drained(t)
	got := s.Search.Documents(t, s.Index(c))
	if len(got) != 3 || got["due"].Meta.Version != "3" || got["old"].Meta.Version != "1" ||
		got["fresh"].Meta.Version != "1" {
		t.Errorf("the sink holds %v", got)
	}
	// The event for next week is still scheduled. The test deletes it, so that no other test waits
	// for it.
	items, _, err := s.Schedule.Due(t.Context(), later.NotBefore.Add(time.Minute), "", 10)
	if err != nil || len(items) != 1 || items[0].Doc != ground.Key(c, "later") {
		t.Fatalf("scheduled: %+v, %v", items, err)
	}
	ground.Must(t, s.Schedule.Delete(t.Context(), items[0].ID))
}

// An event that is due within the longest delay of a queue waits in the queue, and is not written
// before its time.
func TestAnEventForTheNextMinutesWaitsInTheQueue(t *testing.T) {
	s := express(t)
	c := s.Collection("soon")
	before := s.Counts(t)
	due := time.Now().Add(15 * time.Second)
	s.Put(t, ground.Event{Collection: c, ID: "doc", Version: 2, NotBefore: due},
		ground.Event{Collection: c, ID: "doc", Version: 1})
	s.Committed(t, ground.Key(c, "doc"), 1)
	s.Counted(t, before, "Scheduled", 1)
	s.Holds(t, c, map[string]int{"doc": 1})
	ground.Until(t, "the event waits in the queue", func() (bool, string) {
		d := s.Depth(t, s.Live)
		return d == ground.Depth{Delayed: 1}, fmt.Sprintf("%+v", d)
	})
	row := s.Committed(t, ground.Key(c, "doc"), 2)
	if at := row.LastWrite.Time(); at.Before(due) {
		t.Errorf("written at %s, before its time %s", at, due)
	}
	s.Settled(t, c, map[string]int{"doc": 2})
}
