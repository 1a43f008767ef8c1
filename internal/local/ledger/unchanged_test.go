// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

func TestAnEventThatNeedsNoWriteIsCountedOnce(t *testing.T) {
	t.Parallel()
	l, now := New(time.Second), time.Unix(1_800_000_000, 0)
	l.Sent(now, 10, 3)
	note := func(step journal.Step, message string, key shard.OrderKey) {
		l.Note(journal.Note{
			Step: step, At: now.Add(6 * time.Second), Sent: now, Message: message, Doc: "content#a",
			Key: key, Op: shard.Put,
		})
	}
	note(journal.Committed, "1", "k1")
	note(journal.Kept, "2", "k2")
	note(journal.Kept, "2", "k2")      // delivered again
	note(journal.Duplicate, "3", "k2") // sent again
	r := l.Report()
	if r.Written != 1 || r.Unchanged != 1 || r.Duplicates != 1 || r.Freshness.Max != 6000 || r.Check() != nil {
		t.Errorf("got %+v (%v)", r, r.Check())
	}
	if points := l.Recent(); points[len(points)-1].Unchanged != 1 {
		t.Errorf("the last step: %+v", points[len(points)-1])
	}
}
