// SPDX-License-Identifier: Apache-2.0

package index

import (
	"iter"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// recordState is what the turn knows of one message.
type recordState struct {
	open int // number of entries that are not done
	// the message had entries when this turn began: if not, an earlier turn deleted the message or
	// gave it back
	mine    bool
	given   bool // the message leaves the flight without being deleted
	deleted bool
}

// heldEntry is one entry of the manifest that is not done.
type heldEntry struct {
	*flight.Entry
	record int
	item   int // number of the entry in the bitmap
	gone   bool
}

// document is one document of the flight, with the versions that the flight holds, newest first.
type document struct {
	id   shard.DocID
	held []*heldEntry
	row  shard.Row
	step shard.Step

	before     *shard.Row // the row as CLAIM found it; nil until CLAIM
	generation string     // generation of the sink's index; "" if lull does not recognise unchanged content

	lease     shard.Lease
	body      []byte
	version   string
	reference *event.Event      // payload to load under the lease; nil if the message contains the payload
	away      bool              // the document waits for an enricher that is away
	unloaded  string            // why the payload could not be loaded, for the row; "" if it was loaded
	loadAfter time.Duration     // the shortest wait before the payload is loaded again
	fault     string            // why the document can never be built: lull rejects it without asking the sink
	faultFor  deadletter.Reason // reason for the dead letter of a document that can never be built
}

// newest returns the newest version that is not done, nil if there is none.
func (d *document) newest() *heldEntry {
	for _, e := range d.held {
		if !e.gone {
			return e
		}
	}
	return nil
}

// unfinished yields the versions that are not done, newest first.
func (d *document) unfinished() iter.Seq[*heldEntry] {
	return func(yield func(*heldEntry) bool) {
		for _, e := range d.held {
			if !e.gone && !yield(e) {
				return
			}
		}
	}
}
