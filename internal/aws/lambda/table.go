// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"context"
	"errors"
	"time"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// Reported returns a store that writes a note for each permanent error of the table. For example,
// the table does not exist, or the role lacks a permission. A turn waits if the table does not
// answer, and without the note no log line would say why.
func (s *Setup) Reported(table shard.Store) shard.Store { return reported{table, s.Journal} }

type reported struct {
	shard.Store
	to journal.Journal
}

// Read reads rows, and writes a note for a permanent error.
func (r reported) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	rows, err := r.Store.Read(ctx, docs, c)
	r.report(err)
	return rows, err
}

// Write writes a row, and writes a note for a permanent error. A refused condition does not count
// as an error.
func (r reported) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	old, err := r.Store.Write(ctx, w)
	r.report(err)
	return old, err
}

func (r reported) report(err error) {
	_, refused := shard.AsRefused(err)
	// the invocation has no time left, which is not an error of the table
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if err != nil && !refused && !ended && backoff.Final(err) {
		r.to.Note(journal.Note{Step: journal.Unreachable, At: time.Now(), Detail: err.Error()})
	}
}
