// Package commitfeed tells what was committed: one event for each commit of a row. They are for
// caches that must forget a document, and for whoever waits until they find what they wrote (ADR
// 0045).
//
// It promises that a change of a row tells the same wherever the row lies: in the table's stream,
// or in the memory of `lull dev`.
package commitfeed

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Source and DetailType are what an event bus knows an event by.
const (
	Source     = "lull"
	DetailType = "doc.indexed"
)

// Event says that a sink has a version of a document, or that a delete was applied.
type Event struct {
	Key        shard.DocID     `json:"key"` // <collection>#<id>, of another sink than the first <collection>@<sink>#<id>
	Collection string          `json:"collection"`
	ID         string          `json:"id"`
	Sink       string          `json:"sink,omitempty"` // where its collection has several: another one than the first
	Operation  shard.Operation `json:"operation"`      // put or delete
	Version    string          `json:"version"`        // the upstream's, as it wrote it
	// OrderKey sorts the events of one document, as text: an event with a smaller one than the last is
	// an old one. Buses and consumers may swap two.
	OrderKey string `json:"orderKey"`
	Run      string `json:"run,omitempty"` // the resync run, a ULID
	// Written is false where the sink had the same content already, and was not asked again.
	Written bool      `json:"written"`
	At      time.Time `json:"at"` // when the row changed
}

// Of tells what a change of a row says, and whether it says anything: only a commit does.
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
