// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"hash/fnv"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/shard"
)

const (
	// sampleSegments is the number of segments with which Sample starts. In a large table, one
	// segment of this number is about a page. If segments have too few rows, Sample divides the
	// number by sampleFewer.
	sampleSegments = 1 << 12
	sampleFewer    = 8
	samplePage     = 200
)

// Sample returns up to n documents for whose rows wanted is true. The seed chooses the parts of the
// table that Sample reads: callers pass a random seed. The argument pages bounds how many pages
// Sample reads for each number of segments. So Sample may find fewer documents than n.
func (t Table) Sample(ctx context.Context, from shard.Scanner, seed string, n, pages int,
	wanted func(shard.Row) bool,
) (docs []shard.DocID, err error) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed)) // writing to a hash never fails
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
