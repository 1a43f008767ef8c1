// SPDX-License-Identifier: Apache-2.0

// Package commitfeed makes an event from each commit of a row. Caches use the events to drop a
// document, and clients use them to wait until they can find what they wrote (ADR 0045).
//
// The package promises that a change of a row makes the same event in the table's stream and in the
// memory of `lull dev`.
package commitfeed

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Source and DetailType identify lull's events on an event bus.
const (
	Source     = "lull"
	DetailType = "doc.indexed"
)

// Event says that a sink now has a version of a document, or that a delete was applied.
type Event struct {
	Key        shard.DocID     `json:"key"` // <collection>#<id>; for a further sink <collection>@<sink>#<id>
	Collection string          `json:"collection"`
	ID         string          `json:"id"`
	Sink       string          `json:"sink,omitempty"` // the sink, if it is not the first one of its collection
	Operation  shard.Operation `json:"operation"`      // put or delete
	Version    string          `json:"version"`        // as the upstream wrote the version
	// OrderKey sorts the events of one document, as text. Buses and consumers may swap events: an
	// event is old if its key is smaller than the key of an earlier event.
	OrderKey string `json:"orderKey"`
	Run      string `json:"run,omitempty"` // the resync run, a ULID
	// Written is false if the sink had the same content already, so that lull sent no request.
	Written bool      `json:"written"`
	At      time.Time `json:"at"` // when the row changed
}

// Of returns the event of a change of a row, and false if the change is not a commit.
func Of(before, after shard.Row, at time.Time) (Event, bool) {
	k := after.Committed
	if strings.HasPrefix(string(after.Doc), "!") || k <= before.Committed || k.IsFloor() {
		return Event{}, false
	}
	p, err := k.Parts()
	if err != nil {
		return Event{}, false
	}
	e := Event{
		Key: after.Doc, Collection: string(after.Doc.Collection()), ID: after.Doc.ID(), Sink: after.Doc.Sink(),
		Operation: after.CommittedOp,
		Version:   k.VersionText(), OrderKey: hex.EncodeToString([]byte(k)),
		Written: after.LastWrite != before.LastWrite, At: at.UTC(),
	}
	if p.Run != (shard.Run{}) {
		e.Run = p.Run.String()
	}
	return e, true
}
