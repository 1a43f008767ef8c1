// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"context"
	"fmt"
	"slices"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// mostIDs is how many ids are kept in memory at most if the engine does not sort by id. A million
// ids take about 100 MB. A larger index takes one pass for each million documents.
const mostIDs = 1_000_000

// smallest keeps the smallest ids of those that are added and are greater than after.
type smallest struct {
	most  int
	after string
	kept  []string
	bound string // if more is set: ids from this id on are not kept
	more  bool   // some added ids were not kept
}

func (k *smallest) add(id string) {
	if id <= k.after {
		return
	}
	if k.more && id >= k.bound {
		return
	}
	if k.kept = append(k.kept, id); len(k.kept) >= 2*k.most {
		k.cut()
	}
}

// cut sorts the ids, and keeps the smallest ids: as many as the field most allows.
func (k *smallest) cut() {
	slices.Sort(k.kept)
	if len(k.kept) > k.most {
		k.kept, k.bound, k.more = k.kept[:k.most], k.kept[k.most], true
	}
}

// collected pages through documents like allOf, for an engine that does not sort by id, such as
// Elasticsearch. The method first reads all ids without documents, and then reads the documents in
// the order of ids. The method omits documents that were deleted in the meantime.
func (s *Sink) collected(ctx context.Context, c shard.Collection, query object, after string,
	f func(shard.DocID, []byte) error,
) error {
	index, _ := s.names.Index(c)
	for {
		ids := smallest{most: mostIDs, after: after}
		err := s.scroll(ctx, index, query, func(docs []sink.Versioned) error {
			for _, d := range docs {
				ids.add(d.ID)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("read the ids of %s: %w", c, err)
		}
		ids.cut()
		for page := range slices.Chunk(ids.kept, pageSize) {
			docs := make([]shard.DocID, len(page))
			for i, id := range page {
				docs[i] = shard.DocID(string(c) + "#" + id)
			}
			sources, err := s.sources(ctx, docs, true)
			if err != nil {
				return err
			}
			for i, source := range sources {
				if source == nil {
					continue
				}
				if err := f(docs[i], source); err != nil {
					return err
				}
			}
			after = page[len(page)-1]
		}
		if !ids.more {
			return nil
		}
	}
}
