// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/sink"
)

// maxRefusals is how many refusals one Write accepts while it searches for the document to blame.
// Finding one document among 500 takes about 17 requests.
const maxRefusals = 32

// Entry is one op, in the form in which requests contain it.
type Entry struct {
	sink.Op
	Index    string
	Plain    []byte // the document without metadata; nil for a delete, and after the document is copied to Text
	Text     []byte // the part of a request's body that is for this op
	Position int    // the position of the op in the batch
}

// Batch is one call of Write: its ops, and the outcome of each op. If an answer says that the
// engine accepts nothing, Batch stops sending. A Batch is safe for concurrent use if no two calls
// have the same entry.
type Batch struct {
	// Outcomes are the outcomes of the ops, in their order. An op without an outcome was not sent.
	Outcomes []sink.Outcome
	// Same says that unsent ops get the outcome of the answer that stopped the batch. Without Same,
	// unsent ops are Throttled.
	Same bool

	stop     atomic.Pointer[sink.Outcome] // the outcome that stopped the batch
	refusals atomic.Int64
}

// Saw looks at the outcome of a request. If the outcome says that the engine accepts nothing, Saw
// stops the batch and returns true.
func (b *Batch) Saw(o sink.Outcome) (stops bool) {
	stops = (o.Kind == sink.Throttled || o.Kind == sink.Configuration) && !o.Apart
	if stops {
		b.stop.CompareAndSwap(nil, &o)
	}
	return stops
}

// heldBack returns the outcome of an op that must not be sent, or false if the op may be sent.
// After the context has ended, no op may be sent.
func (b *Batch) heldBack(ctx context.Context) (sink.Outcome, bool) {
	switch o := b.stop.Load(); {
	case o != nil && b.Same:
		return *o, true
	case o != nil:
		return sink.Outcome{
			Kind: sink.Throttled, RetryAfter: o.RetryAfter, Status: o.Status, Reason: classNotSent,
		}, true
	}
	return Late, ctx.Err() != nil
}

// Prepare returns an entry for each op that can be sent to the engine. Every other op gets its
// outcome. encode sets the text of an entry. If encode is nil, entries have no text.
func (b *Batch) Prepare(ctx context.Context, ops []sink.Op, names sink.Names,
	encode func(*Entry) *sink.DocumentError,
) []Entry {
	b.Outcomes = make([]sink.Outcome, len(ops))
	entries := make([]Entry, 0, len(ops))
	for i, op := range ops {
		index, ok := names.Index(op.Doc.Collection())
		e := Entry{Op: op, Index: index, Position: i}
		switch {
		case ctx.Err() != nil:
			b.Outcomes[i] = Late
		case !ok:
			b.Outcomes[i] = sink.Outcome{Kind: sink.Rejected, Reason: classOtherCollection}
		default:
			if fault := e.encode(encode); fault != nil {
				b.Outcomes[i] = fault.Outcome()
				continue
			}
			b.Outcomes[i] = Late // until the entry is sent
			entries = append(entries, e)
		}
	}
	return entries
}

func (e *Entry) encode(encode func(*Entry) *sink.DocumentError) (fault *sink.DocumentError) {
	if e.Kind == event.Put {
		e.Plain, fault = sink.Plain(e.Document)
	}
	if fault != nil || encode == nil {
		return fault
	}
	fault = encode(e)
	e.Plain = nil // otherwise every document of the batch would be in memory twice
	return fault
}

// All sets the same outcome for all the entries.
func (b *Batch) All(entries []Entry, o sink.Outcome) {
	for _, e := range entries {
		b.Outcomes[e.Position] = o
	}
}

// Each sends each entry in a separate request, several at the same time.
func (b *Batch) Each(ctx context.Context, parallel int, entries []Entry, send func(Entry) sink.Outcome) {
	fanout.Runner(nil).Each(parallel, len(entries), func(i int) {
		o, held := b.heldBack(ctx)
		if !held {
			o = send(entries[i])
			b.Saw(o)
		}
		b.All(entries[i:i+1], o)
	})
}

// Bounds limits the size of a request. A document larger than Bytes is sent alone.
type Bounds struct {
	Documents int
	Bytes     int64
	OneIndex  bool // all entries of a request must have the same index
}

// NewBounds returns the bounds for a number of documents and of bytes. 0 or less means 500
// documents or 5 MB.
func NewBounds(documents int, bytes int64) Bounds {
	return Bounds{Documents: cmp.Or(max(documents, 0), 500), Bytes: cmp.Or(max(bytes, 0), 5<<20)}
}

// Cut returns how many entries fit into one request, and their size in bytes. Cut returns at least
// one entry.
func (most Bounds) Cut(entries []Entry) (n int, bytes int64) {
	for n, e := range entries {
		next := bytes + int64(cmp.Or(len(e.Text), len(e.Plain)))
		if n > 0 && (n >= most.Documents || next > most.Bytes || most.OneIndex && e.Index != entries[0].Index) {
			return n, bytes
		}
		bytes = next
	}
	return len(entries), bytes
}

// Body returns the texts of the entries, joined.
func Body(entries []Entry) []byte {
	texts := make([][]byte, len(entries))
	for i, e := range entries {
		texts[i] = e.Text
	}
	return slices.Concat(texts...)
}

// Push sends entries in as few requests as the bounds allow, one after another. The function send
// makes one request. Push returns one outcome for the whole request, or nil if it has set the
// outcome of each op itself. ofOne says that the request was refused because of its contents.
//
// Push sends such a request again in smaller parts, until the document to blame is alone. A request
// has half as many documents after each refusal, and twice as many after each success. The bound on
// bytes stays small.
func (b *Batch) Push(ctx context.Context, entries []Entry, most Bounds,
	send func([]Entry) (whole *sink.Outcome, ofOne bool),
) {
	now := most
	for len(entries) > 0 {
		if held, ok := b.heldBack(ctx); ok {
			b.All(entries, held)
			return
		}
		n, bytes := now.Cut(entries)
		narrows := n > 1 || now != most
		whole, ofOne := send(entries[:n])
		switch {
		case ofOne && narrows && b.refusals.Add(1) > maxRefusals:
			b.All(entries, sink.Outcome{
				Kind: sink.Throttled, Apart: true, Status: whole.Status, Reason: classNotNarrowed,
			})
			return
		case ofOne && n > 1 && whole.Reason == sink.TooLarge:
			now.Bytes = bytes / 2
			continue
		case ofOne && n > 1:
			now.Documents = n / 2
			continue
		case !ofOne:
			now.Documents = min(2*now.Documents, most.Documents)
		}
		if whole != nil {
			b.All(entries[:n], *whole)
			b.Saw(*whole)
		}
		entries = entries[n:]
	}
}
