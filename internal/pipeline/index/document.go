package index

import (
	"slices"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// recordState is what the turn knows of one message.
type recordState struct {
	open    int  // entries that are not done
	mine    bool // it had entries when this turn began: if not, an earlier turn deleted it or gave it back
	given   bool // it leaves the flight without being deleted
	deleted bool
}

// held is one entry of the manifest that is not done.
type held struct {
	flight.Entry
	record int
	item   int // number in the bitmap
	gone   bool
}

// document is one document of the flight, with the versions that the flight holds, newest first.
type document struct {
	id   shard.DocID
	held []*held
	row  shard.Row
	step shard.Step

	before     *shard.Row // as CLAIM found it; nil before
	generation string     // of the sink's index; "" if unchanged content is not recognised

	lease     shard.Lease
	body      []byte
	version   string
	reference *event.Event      // loaded under the lease; nil if the message has the payload
	away      bool              // it waits for an enricher that is away
	unloaded  string            // why the payload could not be loaded, for the row; "" if it was loaded
	loadAfter time.Duration     // the shortest wait before it is loaded again
	fault     string            // why the document can never be built: reject it without asking the sink
	faultFor  deadletter.Reason // the dead letter's reason for it
}

// newest returns the newest version that is not done, nil if there is none.
func (d *document) newest() *held {
	for _, e := range d.held {
		if !e.gone {
			return e
		}
	}
	return nil
}

// left returns the versions that are not done, newest first.
func (d *document) left() []*held {
	return slices.DeleteFunc(slices.Clone(d.held), func(e *held) bool { return e.gone })
}
