// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

func TestPartsCountTheEventsOfEachSinkAndCollection(t *testing.T) {
	t.Parallel()
	l, now := New(0), time.Unix(1_800_000_000, 0)
	note := func(step journal.Step, sink, doc, message string) {
		l.Note(journal.Note{
			Step: step, Sink: sink, Doc: shard.DocID(doc), Key: shard.OrderKey(message), Message: message, At: now,
			Sent: now, Op: shard.Put, Letter: "letter-" + message,
		})
	}
	l.Came(Arrival{BySource, "cms", 3}, Arrival{BySink, "", 3})
	note(journal.Committed, "search", "news#a", "1")
	note(journal.Committed, "vectors", "news@vectors#a", "2")
	note(journal.DeadLettered, "search", "pages#b", "3")
	note(journal.Redriven, "search", "pages#b", "3") // it will get another outcome
	note(journal.Superseded, "search", "pages#b", "4")
	note(journal.Superseded, "search", "pages#b", "4") // delivered again
	want := "[collection news 2 0 0, collection pages 0 1 0, sink search 1 1 0, sink vectors 1 0 0, source cms 0 0 0]"
	got := "["
	for i, p := range l.Parts() {
		if i > 0 {
			got += ", "
		}
		got += fmt.Sprint(p.Kind, " ", p.Name, " ", p.Written, " ", p.Superseded, " ", p.Dead)
	}
	if got += "]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A sender chooses the names of collections. All names beyond a limit are counted together.
func TestTheNumberOfPartsIsBounded(t *testing.T) {
	t.Parallel()
	l := New(0)
	for i := range 10_000 {
		l.Came(Arrival{ByCollection, fmt.Sprint("c", i), 1})
	}
	all, sum := l.Parts(), 0
	for _, p := range all {
		sum += p.Events
	}
	if len(all) != maxParts+1 || all[0].Name != "" || all[0].Events != 10_000-maxParts || sum != 10_000 {
		t.Errorf("got %d parts with %d events, the first is %+v", len(all), sum, all[0])
	}
}
