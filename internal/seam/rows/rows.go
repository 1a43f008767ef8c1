// SPDX-License-Identifier: Apache-2.0

// Package rows reads and writes the table for lull's functions. The package retries every call, and
// repeats PARK until the row shows the result. It makes no decisions: package shard does.
package rows

import (
	"context"
	"crypto/rand"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
)

// NewToken returns a new token for a lease: 128 random bits.
func NewToken() shard.Token { return shard.Token(rand.Text()) }

// Table is the table with retries. It keeps the promises of [shard.Store].
type Table struct {
	Store shard.Store
	Clock clock.Clock
}

var _ shard.Store = Table{}

// Read calls [shard.Store.Read] with retries.
func (t Table) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	return backoff.Get(ctx, t.Clock, func() ([]shard.Row, error) { return t.Store.Read(ctx, docs, c) })
}

// One reads the row of one document.
func (t Table) One(ctx context.Context, doc shard.DocID, c shard.Consistency) (shard.Row, error) {
	rows, err := t.Read(ctx, []shard.DocID{doc}, c)
	if err != nil {
		return shard.Row{}, err
	}
	return rows[0], nil
}

// Of reads the rows of documents, each once, and returns the rows by document. The document of an
// undecodable message is empty. Of does not read a row for the empty document, and the result has
// no row for it.
func (t Table) Of(ctx context.Context, docs []shard.DocID, c shard.Consistency) (map[shard.DocID]shard.Row, error) {
	rows := make(map[shard.DocID]shard.Row, len(docs))
	var named []shard.DocID
	for _, d := range docs {
		if _, known := rows[d]; d != "" && !known {
			rows[d] = shard.Row{}
			named = append(named, d)
		}
	}
	if len(named) == 0 {
		return rows, nil
	}
	found, err := t.Read(ctx, named, c)
	for i, row := range found {
		rows[named[i]] = row
	}
	return rows, err
}

// Write calls [shard.Store.Write] with retries. All tries have the same token. So if an earlier try
// was applied, the row refuses the next try and shows the token.
func (t Table) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	return backoff.Get(ctx, t.Clock, func() (shard.Row, error) { return t.Store.Write(ctx, w) })
}

// Ensure calls Write. If the row refuses the write, Ensure passes the row to the function so. If
// the function returns true, an earlier try was applied, and only the answer of that try was lost.
// Ensure then returns the row and no error.
func (t Table) Ensure(ctx context.Context, w shard.Write, so func(shard.Row) bool) (shard.Row, error) {
	old, err := t.Write(ctx, w)
	if refused, ok := shard.AsRefused(err); ok && so(refused.Row) {
		return refused.Row, nil
	}
	return old, err
}

// parkTries bounds how often PARK is tried on a row that keeps changing.
const parkTries = 4

// Park marks the row of a version whose dead letter is stored. The newest image of the row decides
// the form of the write. Park returns what the row says about the version, and the newest image. It
// calls refused for every write that the row refuses. After an error it is unknown whether the row
// has the mark.
func (t Table) Park(ctx context.Context, doc shard.DocID, k shard.OrderKey, expires int64, image shard.Row,
	refused func(shard.Transition),
) (shard.Mark, shard.Row, error) {
	for range parkTries {
		w := shard.Park(doc, k, shard.MicrosOf(t.Clock.Now()), expires, image)
		_, err := t.Write(ctx, w)
		r, ok := shard.AsRefused(err)
		switch {
		case err == nil:
			return shard.MarkThere, w.Apply(image), nil
		case !ok:
			return shard.MarkAgain, image, err
		}
		refused(w.Transition)
		image = r.Row
		if m := shard.Marked(image, k, shard.MicrosOf(t.Clock.Now())); m != shard.MarkAgain {
			return m, image, nil
		}
	}
	return shard.MarkAgain, image, nil
}
