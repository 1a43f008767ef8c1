package index

import (
	"context"

	"github.com/lullhq/lull/internal/shard"
)

// unchanged commits documents that were loaded under the lease and that the sink already has. It
// returns the others, with the content that COMMIT will record. CLAIM removed `content` from the
// row but returned the row before. The sink has that content if no version was claimed then.
func unchanged(ctx context.Context, c *closer, docs []*document) (others []*document) {
	same, others := split(docs, func(d *document) bool {
		e := d.newest()
		if d.fault != "" || e.Op != shard.Put {
			return false
		}
		d.lease.Content = d.content(e.Key)
		return d.reference != nil && !e.resync() && d.showed(d.body)
	})
	c.finishAll(len(same), func(i int) func() { return c.commit(ctx, same[i], same[i].newest(), false) })
	return others
}

// showed reports whether the sink has these bytes, by the row before CLAIM.
func (d *document) showed(plain []byte) bool {
	was := d.before
	return d.generation != "" && was.Claimed == "" && was.CommittedOp == shard.Put &&
		was.Content == shard.ContentOf(d.generation, was.Committed, plain)
}
