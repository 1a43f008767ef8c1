package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/rows"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Looker compares documents with their rows. It only reads. All fields are required, except
// Parallel and Off. It is safe for concurrent use.
type Looker struct {
	Shards   shard.Store
	Reader   sink.Reader
	SinkName string
	Config   *config.Config
	Clock    clock.Clock
	Off      time.Duration // how far Clock may be from those of the functions, beyond the guard
	Parallel fanout.Runner // nil for goroutines
	Whole    bool          // look at documents that lull did not write, too: where Reader is a sink.Auditor
}

// Finding is a document, as it stands in the table and in the sink.
type Finding struct {
	Row        shard.Row // as it was read, before the copy was
	Copy       shard.InSink
	Difference shard.Difference
	Unsure     bool   // Older, but perhaps kept: by its fence the copy is of the last write
	Document   []byte // what the sink holds, JSON; nil for nothing, and without a look at the whole

	quiet shard.Micros // see shard.Raise
}

const (
	// atLeast is how long a search engine may still apply a request after we hung up, where it has
	// versions and applyDelay is 0; and how long a commit may take to be seen by a search.
	atLeast = 30 * time.Second
	// maxParallel bounds the requests to the sink.
	maxParallel = 16
)

func (l Looker) table() rows.Table { return rows.Table{Store: l.Shards, Clock: l.Clock} }

// settled is how long after the end of a lease nothing changes any more that was done under it.
func (l Looker) settled() time.Duration {
	return max(l.Config.ApplyDelay(l.SinkName), atLeast) + l.Config.Index.Guard
}

// Look reads the rows, consistently, and then what the sink holds of them. It returns one finding
// for each document, in their order.
func (l Looker) Look(ctx context.Context, docs []shard.DocID) ([]Finding, error) {
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

// quiet is the moment before which a lease must have ended. The caller reads after it.
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
	f.Difference = shard.OtherClass // whatever it is: it is not what the row committed
	switch {
	case !c.stranger || !l.Whole:
	case row.Pending > row.Committed:
		f.Difference = shard.Waiting // it will be written over, or deleted
	case row.Committed == "" || row.CommittedOp == shard.Delete:
		f.Difference = shard.Stranger
	}
	return f
}

// stored is a copy whose mark may say nothing that can be read.
type stored struct {
	shard.InSink
	unread   bool
	stranger bool   // there is no mark
	last     bool   // by its fence it is of the row's last write
	document []byte // of a look at the whole
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

// together asks for many documents in one request; nil where the sink cannot.
func (l Looker) together() func(context.Context, []shard.DocID) ([]sink.Stored, error) {
	if a, ok := l.Reader.(sink.Auditor); ok && l.Whole {
		return a.Documents
	}
	if m, ok := l.Reader.(sink.Marker); ok {
		return m.Marks
	}
	return nil
}

// ask is one request to the sink, with its retries.
func (l Looker) ask(ctx context.Context, f func(ctx context.Context) error) error {
	return backoff.Do(ctx, l.Clock, func() error {
		call, cancel := l.Clock.Deadline(ctx, l.Config.Index.SinkDeadline)
		defer cancel()
		return f(call)
	})
}

// ours reports whether a row is one of the collection, for the sink that is looked at.
func (l Looker) ours(row shard.DocID, c shard.Collection) bool {
	return row.IsDocument() && row.Collection() == c && l.row(row) == row
}

// row is the key of the row for the sink that is looked at, which knows documents without one.
func (l Looker) row(doc shard.DocID) shard.DocID {
	row, _ := l.Config.RowAt(doc, l.SinkName)
	return row
}

// copies is what the sink holds of some documents: in one request where it can tell the marks of
// many at once.
func (l Looker) copies(ctx context.Context, rows []shard.DocID) ([]stored, error) {
	docs, out := make([]shard.DocID, len(rows)), make([]stored, len(rows))
	for i, row := range rows {
		docs[i] = row.Plain()
	}
	together := l.together()
	var err error
	switch {
	case len(docs) == 0:
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
