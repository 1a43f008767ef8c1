// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
)

// An index was emptied without lull. `lull replay` sends the archived messages again. Documents
// that changed later keep their newest version, and a deleted document stays deleted.
func TestReplayBringsBackWhatTheIndexHasLost(t *testing.T) {
	s := express(t)
	c := s.Collection("replay")
	from := time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	s.Direct(t, ground.Event{Collection: c, ID: "lost", Version: 1}, ground.Event{Collection: c, ID: "newer", Version: 1},
		ground.Event{Collection: c, ID: "gone", Version: 1})
	s.Settled(t, c, map[string]int{"lost": 1, "newer": 1, "gone": 1})
	s.Direct(t, ground.Event{Collection: c, ID: "newer", Version: 2}, ground.Event{Collection: c, ID: "gone", Version: 2, Delete: true})
	s.Committed(t, ground.Key(c, "gone"), 2)
	s.Settled(t, c, map[string]int{"lost": 1, "newer": 2})
	for _, id := range []string{"lost", "newer"} {
		s.Search.Must(t, "DELETE", "/"+s.Index(c)+"/_doc/"+id+"?refresh=true", nil)
	}
	s.Holds(t, c, map[string]int{})

	again := []string{"replay", "--from", from, "--collection", c}
	s.Says(t, 0, "3 of ", append(again, "--dry-run")...)
	s.Holds(t, c, map[string]int{})
	s.Says(t, 0, "with 3 events sent in resync run", again...)
	s.Settled(t, c, map[string]int{"lost": 1, "newer": 2})
	s.Says(t, 4, "the archive has nothing", "replay", "--from", "720h", "--to", "719h")

	// `lull forget` also removes a document from the archive.
	s.Says(t, 0, "archive", "forget", string(ground.Key(c, "lost")), "--yes")
	s.Says(t, 0, "with 2 events sent in resync run", again...)
	s.Settled(t, c, map[string]int{"newer": 2})
}
