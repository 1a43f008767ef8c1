// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// wholePart is the number of whole documents that are read in one request.
const wholePart = 16

// bytes compares copies in the sink with the digest of the content in their rows. After KEEP the
// sink's copy has an older key than the row, and is still right. A document with the right key may
// have been changed without lull.
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
		if l.Config.OperatorNamesIndex(l.SinkName) {
			// Such a sink may return a document with other bytes than lull wrote, so bytes prove
			// nothing. The row says that the sink has its content, and the operator's text says that
			// the row may be believed.
			if c.Key < r.Committed && r.Content.From(l.Config.Generation(string(of), l.SinkName)) {
				c.Bytes = shard.BytesSame
			}
			continue
		}
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
			case c.document == nil: // the document was deleted in the meantime
			case shard.ContentOf(generations[r.Doc.Collection()], r.Committed, c.document) == r.Content:
				c.Bytes = shard.BytesSame
			default:
				c.Bytes, c.last = shard.BytesOther, false
			}
		}
	}
	return nil
}

// Bytes compares a document that was read from the sink with the digest of the content in its row.
// If the two cannot be compared, a copy of the last write counts as the same.
func (l Looker) Bytes(ctx context.Context, row shard.Row, s sink.Stored) (shard.Bytes, error) {
	copies := []stored{storedOf(s, true)}
	err := l.bytes(ctx, []shard.Row{row}, copies)
	if copies[0].Bytes == shard.BytesUnknown && copies[0].last {
		return shard.BytesSame, err
	}
	return copies[0].Bytes, err
}

// lastWrite reports whether a copy is from the row's last write, judged by the copy's fence. The
// fence of a write is less than a lease before its commit. Two writes may be as close together, so
// the fence is not a proof. But it is the only sign if the bytes cannot be compared.
func (l Looker) lastWrite(r shard.Row, c shard.InSink) bool {
	at := shard.Micros(c.Fence)
	return at <= r.LastWrite && r.LastWrite.Sub(at) <= l.Config.Lease(l.SinkName)
}

// generation returns which index holds the documents of a collection, in the form that the row's
// digest uses. It is empty if the index is unknown, and for a collection with an enricher. For such
// a collection the row's digest is of the bytes before enrichment, and the sink has the bytes after
// it.
func (l Looker) generation(ctx context.Context, c shard.Collection) (g string, err error) {
	asks, ok := l.Reader.(sink.Generator)
	if !ok || l.Config.Collections[string(c)].Enrich != nil {
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

// whole reads whole documents of which only the marks were read before.
func (l Looker) whole(ctx context.Context, rows []shard.Row, copies []stored, part []int) error {
	part = slices.DeleteFunc(slices.Clone(part), func(i int) bool { return copies[i].document != nil })
	docs := make([]shard.DocID, len(part))
	for n, i := range part {
		docs[n] = rows[i].Doc
	}
	l.Whole = true
	found, err := l.copies(ctx, docs)
	for n, c := range found {
		// Take the document only if its mark did not change. Otherwise the document is being
		// written.
		if i := part[n]; c.Key == copies[i].Key && c.Fence == copies[i].Fence {
			copies[i].document = c.document
		}
	}
	return err
}
