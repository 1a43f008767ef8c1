package opensearch

import (
	"context"
	"fmt"
	"slices"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// mostIDs is how many ids are held at most where the engine does not order by id: each million
// takes about 100 MB. More documents take one pass over the index for each million.
const mostIDs = 1_000_000

// smallest keeps the smallest of the ids that it is given and that come after one.
type smallest struct {
	most  int
	after string
	kept  []string
	bound string // if more is set: this id and greater ones are not kept
	more  bool   // some were not kept
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

// cut puts the ids in order, and keeps no more than it may.
func (k *smallest) cut() {
	slices.Sort(k.kept)
	if len(k.kept) > k.most {
		k.kept, k.bound, k.more = k.kept[:k.most], k.kept[k.most], true
	}
}

// collected is allOf for an engine that does not order by id, such as Elasticsearch. It first reads
// all ids without bodies, and then the documents, by id. Documents that are deleted in between are
// omitted.
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
