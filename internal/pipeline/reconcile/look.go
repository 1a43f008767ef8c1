// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Looker compares documents with their rows. It only reads. All fields are required, except
// Parallel and Off. A Looker is safe for concurrent use.
type Looker struct {
	Shards   shard.Store
	Reader   sink.Reader // nil if the sink cannot be read: before a tombstone the sink then counts as empty
	SinkName string
	Config   *config.Config
	Clock    clock.Clock
	Off      time.Duration // how far Clock may differ from the functions' clocks, beyond the guard
	Parallel fanout.Runner // nil means goroutines
	Whole    bool          // also finds documents that lull did not write, if Reader is a sink.Auditor
}

// Finding is a document with its row and its copy in the sink.
type Finding struct {
	Row        shard.Row // the row, read before the copy
	Copy       shard.InSink
	Difference shard.Difference
	Unsure     bool   // the difference is Older, but perhaps after KEEP: by its fence the copy is from the last write
	Document   []byte // the document in the sink as JSON; nil if the sink has none or only marks were read

	quiet shard.Micros // see shard.Raise
}

const (
	// atLeast is the shortest time that lull assumes for two delays. The first is how long a search
	// engine may still apply a request after lull hung up. The second is how long a committed write
	// may be invisible to a search.
	atLeast = 30 * time.Second
	// maxParallel bounds the number of parallel requests to the sink.
	maxParallel = 16
)

func (l Looker) table() rows.Table { return rows.Table{Store: l.Shards, Clock: l.Clock} }

// settled returns how long after the end of a lease a write under that lease may still change the
// sink.
func (l Looker) settled() time.Duration {
	return max(l.Config.Sinks[l.SinkName].Capabilities().ApplyDelay, atLeast) + l.Config.Index.Guard
}

// Look reads the rows, consistently, and then the documents in the sink. It returns one finding for
// each document, in the order of docs. It refuses a document of another part: without its row, it
// would look like one that lull did not write, or that a row must be raised to.
func (l Looker) Look(ctx context.Context, docs []shard.DocID) ([]Finding, error) {
	if other := slices.IndexFunc(docs, func(d shard.DocID) bool { return !l.Config.Ours(d) }); other >= 0 {
		return nil, backoff.Permanent(fmt.Errorf("compare documents: %s", l.Config.NotOurs(docs[other])))
	}
	quiet := l.quiet()
	read, err := l.table().Read(ctx, docs, shard.Consistent)
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	copies, err := l.copies(ctx, docs)
	if err != nil {
		return nil, err
	}
	if err := l.bytes(ctx, read, copies); err != nil {
		return nil, fmt.Errorf("read sink %s: %w", l.SinkName, err)
	}
	out := make([]Finding, len(docs))
	for i := range docs {
		out[i] = l.finding(read[i], copies[i], quiet)
	}
	return out, nil
}

// quiet returns the time before which a lease must have ended. Callers compute this time before
// they read.
func (l Looker) quiet() shard.Micros { return shard.MicrosOf(l.Clock.Now().Add(-l.settled())) }

func (l Looker) finding(row shard.Row, c stored, quiet shard.Micros) Finding {
	f := Finding{Row: row, Copy: c.InSink, Document: c.document, quiet: quiet.Add(-l.Off)}
	kept := shard.MicrosOf(l.Clock.Now().Add(-l.Config.Lifecycle.RowRetention))
	f.Difference = shard.Compare(row, f.Copy, quiet, kept)
	f.Unsure = f.Difference == shard.Older && c.last
	if f.Difference == shard.NoDifference && begun(row) {
		f.Difference = shard.Waiting
	}
	if !c.unread || f.Difference == shard.Busy || f.Difference == shard.Waiting {
		return f
	}
	f.Difference = shard.OtherClass // the sink's document is not what the row committed
	switch {
	case !c.stranger || !l.Whole:
	case row.Pending > row.Committed:
		f.Difference = shard.Waiting // the document will be overwritten or deleted
	case row.Committed == "" || row.CommittedOp == shard.Delete:
		f.Difference = shard.Stranger
	}
	return f
}

// stored is a copy in the sink. The mark of the copy may be unreadable.
type stored struct {
	shard.InSink
	unread   bool
	stranger bool   // the copy has no mark
	last     bool   // by its fence, the copy is from the row's last write
	document []byte // set only if whole documents were read
}

func (s stored) absent() bool { return s.InSink == (shard.InSink{}) && !s.unread }

func storedOf(s sink.Stored, found bool) stored {
	if !found {
		return stored{}
	}
	k, err := shard.ParseOrderKey(s.Key)
	return stored{
		InSink: shard.InSink{Key: k, Fence: s.Fence}, unread: err != nil, stranger: s.Key == "", document: s.Document,
	}
}

// together returns the method of the sink that reads many documents in one request, or nil if the
// sink has no such method.
func (l Looker) together() func(context.Context, []shard.DocID) ([]sink.Stored, error) {
	if a, ok := l.Reader.(sink.Auditor); ok && l.Whole {
		return a.Documents
	}
	if m, ok := l.Reader.(sink.Marker); ok {
		return m.Marks
	}
	return nil
}

// ask makes one request to the sink, with retries.
func (l Looker) ask(ctx context.Context, f func(ctx context.Context) error) error {
	return backoff.Do(ctx, l.Clock, func() error {
		call, cancel := l.Clock.Deadline(ctx, l.Config.Index.SinkDeadline)
		defer cancel()
		return f(call)
	})
}

// ours reports whether a row belongs to the collection, to this sink and to the stack's part. A
// stack keeps rows of another part's documents after the number of parts has grown.
func (l Looker) ours(row shard.DocID, c shard.Collection) bool {
	return row.IsDocument() && row.Collection() == c && l.row(row) == row && l.Config.Ours(row)
}

// row returns the key of the document's row for this sink. The documents in the sink do not contain
// this key.
func (l Looker) row(doc shard.DocID) shard.DocID {
	row, _ := l.Config.RowAt(doc, l.SinkName)
	return row
}

// copies returns the sink's copies of some documents, with one request if the sink can do that.
func (l Looker) copies(ctx context.Context, rows []shard.DocID) ([]stored, error) {
	docs, out := make([]shard.DocID, len(rows)), make([]stored, len(rows))
	for i, row := range rows {
		docs[i] = row.Plain()
	}
	together := l.together()
	var err error
	switch {
	case len(docs) == 0, l.Reader == nil:
	case together != nil:
		err = l.ask(ctx, func(ctx context.Context) error {
			marks, err := together(ctx, docs)
			if err == nil && len(marks) != len(docs) {
				err = backoff.Permanent(fmt.Errorf("%d marks of %d documents", len(marks), len(docs)))
			}
			for i := 0; i < len(docs) && err == nil; i++ {
				out[i] = storedOf(marks[i], marks[i].Doc != "")
			}
			return err
		})
	default:
		err = l.Parallel.Try(maxParallel, len(docs), func(i int) error {
			return l.ask(ctx, func(ctx context.Context) error {
				s, found, err := l.Reader.Get(ctx, docs[i])
				if err != nil {
					return fmt.Errorf("%s: %w", docs[i], err)
				}
				out[i] = storedOf(s, found)
				return nil
			})
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read sink %s: %w", l.SinkName, err)
	}
	return out, nil
}
