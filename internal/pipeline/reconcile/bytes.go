package reconcile

import (
	"context"
	"slices"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// wholePart is how many whole documents are read in one request.
const wholePart = 16

// bytes compares copies with what their rows say of the bytes. After KEEP the sink's copy has an
// older key than the row, and is right all the same. A document whose key is right may have been
// changed behind lull's back.
func (l Looker) bytes(ctx context.Context, rows []shard.Row, copies []stored) error {
	generations := map[shard.Collection]string{}
	var whole []int
	for i, r := range rows {
		c := &copies[i]
		if r.Content == "" || r.CommittedOp != shard.Put || c.Key == "" || c.Key > r.Committed {
			continue
		}
		c.last = c.Key < r.Committed && l.lastWrite(r, c.InSink)
		of := r.Doc.Collection()
		if _, asked := generations[of]; !asked {
			g, err := l.generation(ctx, of)
			if err != nil {
				return err
			}
			generations[of] = g
		}
		if g := generations[of]; g != "" && r.Content.From(g) {
			whole = append(whole, i)
		}
	}
	for part := range slices.Chunk(whole, wholePart) {
		if err := l.whole(ctx, rows, copies, part); err != nil {
			return err
		}
		for _, i := range part {
			r, c := rows[i], &copies[i]
			switch {
			case c.document == nil: // it has gone since
			case shard.ContentOf(generations[r.Doc.Collection()], r.Committed, c.document) == r.Content:
				c.Bytes = shard.BytesSame
			default:
				c.Bytes, c.last = shard.BytesOther, false
			}
		}
	}
	return nil
}

// Bytes says how a document that was read back compares with what its row says of the bytes. Where
// they cannot be compared, the copy of the last write passes for the same.
func (l Looker) Bytes(ctx context.Context, row shard.Row, s sink.Stored) (shard.Bytes, error) {
	copies := []stored{storedOf(s, true)}
	err := l.bytes(ctx, []shard.Row{row}, copies)
	if copies[0].Bytes == shard.BytesUnknown && copies[0].last {
		return shard.BytesSame, err
	}
	return copies[0].Bytes, err
}

// lastWrite reports whether a copy is of the row's last write, by its fence: that lies before the
// commit, by less than a lease. Two writes may lie as close as that, so it proves nothing. But it
// is all there is to go by where the bytes cannot be compared.
func (l Looker) lastWrite(r shard.Row, c shard.InSink) bool {
	at := shard.Micros(c.Fence)
	return at <= r.LastWrite && r.LastWrite.Sub(at) <= l.Config.Lease(l.SinkName)
}

// generation is where the collection's documents are, as index says it: empty where that cannot be
// told from here. The row knows bytes from before they were enriched, and the sink those from
// after.
func (l Looker) generation(ctx context.Context, c shard.Collection) (g string, err error) {
	asks, ok := l.Reader.(sink.Generator)
	if !ok || l.Config.EnrichFor(c) != nil {
		return "", nil
	}
	err = l.ask(ctx, func(ctx context.Context) error {
		g, err = asks.Generation(ctx, c)
		return err
	})
	if err != nil || g == "" {
		return "", err
	}
	return l.Config.Generation(string(c), l.SinkName) + "\n" + g, nil
}

// whole reads the documents of which only the marks were read.
func (l Looker) whole(ctx context.Context, rows []shard.Row, copies []stored, part []int) error {
	part = slices.DeleteFunc(slices.Clone(part), func(i int) bool { return copies[i].document != nil })
	docs := make([]shard.DocID, len(part))
	for n, i := range part {
		docs[n] = rows[i].Doc
	}
	l.Whole = true
	found, err := l.copies(ctx, docs)
	for n, c := range found {
		// Only as it was read before: else it is being written.
		if i := part[n]; c.Key == copies[i].Key && c.Fence == copies[i].Fence {
			copies[i].document = c.document
		}
	}
	return err
}
