// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// Unwritten is the newest version of a document that its sink does not have.
type Unwritten struct {
	Version   string `json:"version"`
	From      string `json:"from"`      // "held" for a message in a flight, or "dead" for a dead letter
	Operation string `json:"operation"` // put or delete
	// Document is the document that the sink would get. It is empty for a delete, and if the document
	// is unknown. Then Why says why.
	Document json.RawMessage `json:"document,omitempty"`
	Why      string          `json:"why,omitempty"`
}

// unwritten finds versions that the sinks do not have.
type unwritten struct {
	records
	manifests
	parked

	Sources *source.Set
}

// Unwritten finds the newest version that waits in a flight or is a dead letter. It returns
// ErrNotFound if there is no such version.
func (o *unwritten) Unwritten(ctx context.Context, key shard.DocID) (Unwritten, error) {
	if err := o.lay.whole(key); err != nil {
		return Unwritten{}, err
	}
	u, err := o.newestUnwritten(ctx, key)
	if err != nil {
		return Unwritten{}, fmt.Errorf("find the newest of %s: %w", key, err)
	}
	return u, nil
}

func (o *unwritten) newestUnwritten(ctx context.Context, key shard.DocID) (u Unwritten, err error) {
	row, err := o.table().One(ctx, key, shard.Consistent)
	if err != nil {
		return u, err
	}
	if row.Pending > row.Committed {
		m, err := o.manifest(ctx, flight.ID(row.Flight))
		if err != nil {
			return u, err
		}
		for _, r := range m.Records {
			if u, ok := o.unwritten(r.Message, key, row.Pending); ok {
				u.From = "held"
				return u, nil
			}
		}
	}
	letters, err := o.lettersOf(ctx, key, deadletter.Parked)
	if err != nil {
		return u, err
	}
	newest := newestLetter(row, letters)
	if newest == nil {
		return u, fmt.Errorf("no version waits or is a dead letter: %w", ErrNotFound)
	}
	full, err := o.redrives.Show(ctx, newest.ID)
	if err != nil {
		return u, kind(err)
	}
	l := asLetter(full.Facts)
	l.Body, l.Attributes = full.Body, full.Attributes
	at, _ := shard.ParseOrderKey(l.OrderKey) // newestLetter has parsed it
	u, ok := o.unwritten(queue.Message{Body: l.Body, Attributes: l.Attributes, Sent: l.Sent}, key, at)
	if !ok {
		u = Unwritten{Version: l.Version, Why: "the message cannot be decoded: " + l.Detail}
	}
	u.From = "dead"
	return u, nil
}

// unwritten finds a version of a document in a message.
func (o *unwritten) unwritten(m queue.Message, key shard.DocID, at shard.OrderKey) (Unwritten, bool) {
	for _, r := range o.Sources.Decode(m) {
		e := r.Event
		if r.Invalid != nil || r.Skip != "" || e.Doc != key || e.Key != at {
			continue
		}
		u := Unwritten{Version: e.Key.VersionText(), Operation: string(e.Op)}
		switch {
		case e.Op == event.Delete:
		case e.DataRef != "":
			u.Why = "the message refers to the payload, which is fetched when it is written"
		default:
			document, err := o.Sources.Document(m, e)
			if u.Document = document; err != nil {
				u.Document, u.Why = nil, err.Error()
			}
		}
		return u, true
	}
	return Unwritten{}, false
}
