// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"

	"github.com/lullhq/lull/e2e/ground"
)

// An event whose version is older than the committed version, or equal to it, is acknowledged and
// never written.
func TestStaleAndDuplicateAreNotWritten(t *testing.T) {
	s := express(t)
	c := s.Collection("stale")
	key := ground.Key(c, "doc")
	before := s.Begun(t, ground.Event{Collection: c, ID: "doc", Version: 5})
	first, writes := s.Row(t, key), s.Search.Writes(t, s.Index(c))
	s.Spread(t,
		ground.Event{Collection: c, ID: "doc", Version: 4},
		ground.Event{Collection: c, ID: "doc", Version: 5},
		ground.Event{Collection: c, ID: "doc", Version: 3},
	)
	s.Counted(t, before, "Stale", 2)
	s.Counted(t, before, "Duplicate", 1)
	s.Drained(t)
	s.Wrote(t, c, writes, 0)
	if row := s.Row(t, key); row.Committed != first.Committed || row.LastWrite != first.LastWrite {
		t.Errorf("the row changed from %s at %d to %s at %d", first.Committed, first.LastWrite, row.Committed,
			row.LastWrite)
	}
	s.Holds(t, c, map[string]int{"doc": 5})
}

// A delete is a version. An older version is not written after the delete, even when OpenSearch no
// longer remembers the delete.
func TestDeleteIsAVersion(t *testing.T) {
	s := express(t)
	c := s.Collection("delete")
	key := ground.Key(c, "doc")
	s.Search.Must(t, "PUT", "/"+s.Index(c), map[string]any{"settings": map[string]any{"gc_deletes": "0s"}})
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1},
		ground.Event{Collection: c, ID: "other", Version: 1})
	s.Settled(t, c, map[string]int{"doc": 1, "other": 1})

	s.Publish(t, ground.Event{Collection: c, ID: "doc", Version: 3, Delete: true})
	s.Committed(t, key, 3)
	s.Settled(t, c, map[string]int{"other": 1})

	before := s.Counts(t)
	s.Put(t, ground.Event{Collection: c, ID: "doc", Version: 2})
	s.Counted(t, before, "Stale", 1)
	s.Holds(t, c, map[string]int{"other": 1})

	// In a burst, the version decides, and not the order of arrival. A document that never existed
	// can be deleted.
	s.Direct(t,
		ground.Event{Collection: c, ID: "doc", Version: 5},
		ground.Event{Collection: c, ID: "doc", Version: 4, Delete: true},
		ground.Event{Collection: c, ID: "never", Version: 1, Delete: true},
	)
	s.Committed(t, ground.Key(c, "never"), 1)
	s.Settled(t, c, map[string]int{"other": 1, "doc": 5})
}

// If a document is published again without a change, its new version is committed without a write
// to the sink.
func TestWhatHasNotChangedIsNotWritten(t *testing.T) {
	s := withDefaults(t)
	const c = "prices"
	same := map[string]any{"title": "ten pounds"}
	publish := func(version int) {
		t.Helper()
		s.Direct(t, ground.Event{Collection: c, ID: "ticket", Version: version, Data: same})
		s.Committed(t, ground.Key(c, "ticket"), version)
	}
	// The engine creates the index with the first write. Only after that, lull knows which index it
	// is.
	publish(1)
	publish(2)
	writes := s.Search.Writes(t, s.Index(c))
	publish(3)
	publish(4)
	s.Wrote(t, c, writes, 0)
	s.Direct(t, ground.Event{Collection: c, ID: "ticket", Version: 5})
	s.Committed(t, ground.Key(c, "ticket"), 5)
	s.Wrote(t, c, writes, 1)
}
