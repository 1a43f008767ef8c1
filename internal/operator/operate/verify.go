// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"

	"github.com/lullhq/lull/internal/operator/export"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// CheckOrder contains a page of an export, to compare with the sink of its collection.
type CheckOrder struct {
	Collection shard.Collection `json:"collection"`
	Messages   []queue.Outgoing `json:"messages"`
	Sink       string           `json:"sink,omitempty"` // the sink, if the collection has several
	// Versions compares only versions, for an engine whose mapping or pipeline changes the
	// documents.
	Versions bool `json:"versions,omitempty"`
	// Names compares nothing: it only says which documents the messages are about.
	Names bool `json:"names,omitempty"`
}

// Checked compares the events of a page with the sink.
type Checked struct {
	Events []CheckedEvent `json:"events"`
}

// CheckedEvent is the newest event of a document in its page, or an event that is invalid or
// skipped.
type CheckedEvent struct {
	Message int         `json:"message"` // the position of the event's message
	Key     shard.DocID `json:"key,omitempty"`
	Version string      `json:"version,omitempty"`
	// State is same, newer, in_motion, missing, older, changed, undone, other_class, invalid or
	// skipped. It is empty if the event was not compared.
	State string `json:"state"`
	Drift bool   `json:"drift,omitempty"` // the sink differs from the source
	Why   string `json:"why,omitempty"`   // why the event is invalid or skipped
}

// Check compares a page of an export with the sink. It only reads.
func (o *comparer) Check(ctx context.Context, r CheckOrder) (Checked, error) {
	name, err := o.auditedSink(r.Collection, r.Sink)
	if err != nil {
		return Checked{}, err
	}
	// The document in the sink has fields that an enricher added, and the export does not have these
	// fields.
	r.Versions = r.Versions || o.Config.Collections[string(r.Collection)].Enrich != nil
	c := export.Checker{
		Looker: o.looker(name), Sources: o.Sources, Collection: r.Collection, Versions: r.Versions,
		Names: r.Names,
	}
	verdicts, err := c.Check(ctx, r.Messages)
	if err != nil {
		return Checked{}, err
	}
	done := Checked{Events: make([]CheckedEvent, len(verdicts))}
	for i, v := range verdicts {
		done.Events[i] = CheckedEvent{
			Message: v.Message, Key: v.Doc, Version: v.Version, State: string(v.State), Drift: v.State.Drift(),
			Why: v.Why,
		}
	}
	return done, nil
}
