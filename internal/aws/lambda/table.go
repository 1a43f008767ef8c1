package lambda

import (
	"context"
	"errors"
	"time"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// Reported is a table whose permanent errors are noted: for example, that it does not exist, or
// that the role lacks a permission. A turn must wait if the table does not answer. Without a note
// it would wait in silence.
func (s *Setup) Reported(table shard.Store) shard.Store { return reported{table, s.Journal} }

type reported struct {
	shard.Store
	to journal.Journal
}

// Read reads, and notes a permanent error.
func (r reported) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	rows, err := r.Store.Read(ctx, docs, c)
	r.report(err)
	return rows, err
}

// Write writes, and notes a permanent error. A refused condition is not an error here.
func (r reported) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	old, err := r.Store.Write(ctx, w)
	r.report(err)
	return old, err
}

func (r reported) report(err error) {
	_, refused := shard.AsRefused(err)
	// the invocation's time is over: not an error of the table
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if err != nil && !refused && !ended && backoff.Final(err) {
		r.to.Note(journal.Note{Step: journal.Unreachable, At: time.Now(), Detail: err.Error()})
	}
}
