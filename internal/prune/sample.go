package prune

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

const (
	// sampleSegments cut the table so finely that one segment is about a page of a large one. Fewer
	// are tried where a segment has too few rows.
	sampleSegments = 1 << 12
	sampleFewer    = 8
	samplePage     = 200
)

// sample picks a few rows of this sink at random and starts an execution in which index compares
// them with what the sink holds: index alone reaches the sink. A sample may be lost: the next
// run takes another.
func (r *run) sample(ctx context.Context) error {
	n := r.Config.Lifecycle.DriftSample
	if n == 0 || r.Launcher == nil || shard.Unavailable(r.health) {
		return nil
	}
	docs, err := r.pick(ctx, n)
	if err != nil || len(docs) == 0 {
		return err
	}
	now := shard.MicrosOf(r.Clock.Now())
	s := flight.State{
		Schema: flight.SchemaVersion, Flight: r.newID(), WakeAt: flight.WakeText(now.Time()), VisibleUntil: now,
		Sample: docs,
	}
	if err := r.try(ctx, func() error { return r.Launcher.Start(ctx, s) }); err != nil {
		return fmt.Errorf("start the comparison: %w", err)
	}
	r.note(journal.Note{Step: journal.Sampled, Flight: string(s.Flight), Count: len(docs)})
	return nil
}

// pick reads one page of a random part of the table. The run's token is random.
func (r *run) pick(ctx context.Context, n int) (docs []shard.DocID, err error) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.token)) // a hash takes everything
	for segments := sampleSegments; ; segments /= sampleFewer {
		list, _, err := page(ctx, r.Pruner, func() ([]shard.Row, string, error) {
			return r.Scanner.Scan(ctx, int(h.Sum64()%uint64(segments)), segments, "", samplePage)
		})
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		docs = docs[:0]
		for _, row := range list {
			if row.Doc.IsDocument() && row.Committed != "" && r.mine("", row.Doc) && len(docs) < n {
				docs = append(docs, row.Doc)
			}
		}
		if len(docs) >= n || segments == 1 {
			return docs, nil
		}
	}
}
