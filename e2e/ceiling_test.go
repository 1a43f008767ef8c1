// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/shard"
)

// The second sink has a ceiling of documents a second. lull does not exceed the ceiling for forty
// documents that are due together. A document is claimed before it is sent, and committed after
// that. So a document that was claimed and committed within a time was also sent within that time,
// even on a slow host.
func TestNoMoreDocumentsGoThanTheCeilingLets(t *testing.T) {
	s := withDefaults(t)
	const documents = 40
	ceiling := float64(config.Ceiling(s.Config.Sinks[ground.Archive])) / 1000
	if ceiling == 0 {
		t.Fatal("the second sink has no ceiling")
	}
	var events []ground.Event
	for i := range documents {
		events = append(events, ground.Event{Collection: "paced", ID: fmt.Sprintf("many-%02d", i), Version: 1})
	}
	s.ToArchive(t, events...)
	type span struct{ claimed, committed shard.Micros }
	var spans []span
	for _, e := range events {
		row := s.Committed(t, ground.Key("paced", e.ID), 1)
		spans = append(spans, span{committed: row.LastWrite})
	}
	hits := s.Search.Documents(t, s.Index("paced"))
	for i, e := range events {
		spans[i].claimed = shard.Micros(hits[e.ID].Version) // the fence is the claim's time
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.claimed - b.claimed) })
	for _, from := range spans {
		for _, to := range spans {
			n := 0
			for _, d := range spans {
				if d.claimed >= from.claimed && d.committed <= to.committed {
					n++
				}
			}
			in := to.committed.Sub(from.claimed)
			if most := ceiling * (in + 1500*time.Millisecond).Seconds(); n > 1 && float64(n) > most {
				t.Fatalf("%d documents went within %s, want %.1f at most", n, in, most)
			}
		}
	}
	t.Logf("%d documents in %s", documents, spans[len(spans)-1].committed.Sub(spans[0].claimed))
}
