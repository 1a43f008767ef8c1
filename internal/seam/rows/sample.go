package rows

import (
	"context"
	"hash/fnv"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/shard"
)

const (
	// sampleSegments cut the table so finely that one segment is about a page of a large one. Fewer
	// are tried where the segments have too few rows.
	sampleSegments = 1 << 12
	sampleFewer    = 8
	samplePage     = 200
)

// Sample names up to n documents whose rows are wanted, from random parts of the table: the seed is
// random. It reads at most so many pages for each size of the parts, so it may find fewer.
func (t Table) Sample(ctx context.Context, from shard.Scanner, seed string, n, pages int,
	wanted func(shard.Row) bool,
) (docs []shard.DocID, err error) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed)) // a hash takes everything
	for segments := sampleSegments; ; segments /= sampleFewer {
		docs = docs[:0]
		cursor := ""
		for i := range pages {
			var list []shard.Row
			segment := int((h.Sum64() + uint64(i)) % uint64(segments))
			err := backoff.Do(ctx, t.Clock, func() (err error) {
				list, cursor, err = from.Scan(ctx, segment, segments, cursor, samplePage)
				return err
			})
			if err != nil {
				return nil, err
			}
			for _, row := range list {
				if len(docs) < n && row.Doc.IsDocument() && wanted(row) {
					docs = append(docs, row.Doc)
				}
			}
			if len(docs) >= n || segments == 1 && cursor == "" {
				return docs, nil
			}
			if segments > 1 {
				cursor = "" // the next part of the table
			}
			if i+1 == segments && segments > 1 {
				break
			}
		}
		if segments == 1 {
			return docs, nil
		}
	}
}
