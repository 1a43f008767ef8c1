//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
)

// A thousand messages by three ways, in any order, some of them deletes: OpenSearch ends up with
// exactly the newest version of every document, and the queues with nothing.
func TestAThousandMessages(t *testing.T) {
	s := express(t)
	c := s.Collection("thousand")
	const messages, documents = 1000, 200
	before := s.Counts(t)
	var events []ground.Event
	want := make(map[string]int)
	newest := make(map[string]ground.Event)
	for i := range messages {
		e := ground.Event{
			Collection: c, ID: fmt.Sprintf("doc-%03d", i%documents), Version: 1 + i/documents,
			Delete: i%7 == 0,
		}
		events = append(events, e)
		newest[e.ID] = e // versions of a document grow with i
	}
	for id, e := range newest {
		if !e.Delete {
			want[id] = e.Version
		}
	}
	rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	began := time.Now()
	s.Spread(t, events...)
	t.Logf("sent in %s", time.Since(began).Round(time.Millisecond))
	s.Drained(t)
	ground.Until(t, "every newest version is committed", func() (bool, string) {
		for id, e := range newest {
			if row := s.Row(t, ground.Key(c, id)); ground.Version(row.Committed) != fmt.Sprint(e.Version) {
				return false, fmt.Sprintf("%s: committed %q, want %d", id, ground.Version(row.Committed), e.Version)
			}
		}
		return true, ""
	})
	t.Logf("all committed after %s", time.Since(began).Round(time.Millisecond))
	s.Drained(t)
	s.Holds(t, c, want)
	t.Logf("%d documents, %d of them deleted, %d writes: %v", documents, documents-len(want),
		s.Search.Writes(t, s.Index(c)), s.Counts(t).Since(before))
	s.Never(t, before, "DeadLettered", "Rejected", "LeaseLost", "SinkNewer", "Schema", "Panics")
	if n := s.Search.Writes(t, s.Index(c)); n >= messages/2 {
		t.Errorf("OpenSearch counts %d writes for %d documents: nothing was collapsed", n, documents)
	}
}
