// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// UnsearchableQuery names a collection, and a sink if the collection has several.
type UnsearchableQuery struct {
	Collection shard.Collection `json:"collection"`
	Sink       string           `json:"sink,omitempty"`
}

// Unsearchable counts the documents of a collection with values that the engine did not index, so
// that searches do not find these values.
type Unsearchable struct {
	// Known says that the engine can be asked.
	Known     bool          `json:"known"`
	Documents int64         `json:"documents"`
	Some      []shard.DocID `json:"some,omitempty"`   // at most ten of the documents
	Fields    []string      `json:"fields,omitempty"` // the fields of these values, if they look like names
}

// Unsearchable asks the sink which documents have values that a search does not find.
func (o *comparer) Unsearchable(ctx context.Context, q UnsearchableQuery) (u Unsearchable, err error) {
	name, err := o.auditedSink(q.Collection, q.Sink)
	if err != nil {
		return u, err
	}
	r, err := o.reader(name)
	if err != nil {
		return u, err
	}
	omitter, ok := r.(sink.Omitter)
	if !ok {
		return u, nil
	}
	found, err := omitter.Omitted(ctx, q.Collection)
	if err != nil {
		return u, fmt.Errorf("ask what the engine left out: %w", o.hinted(err))
	}
	return Unsearchable{Known: true, Documents: found.Documents, Some: found.Some, Fields: found.Fields}, nil
}
