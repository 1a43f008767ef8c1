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

// Entry is one op with its place in the requests.
type Entry struct {
	sink.Op
	Index    string
	Plain    []byte // the document without meta; nil for a delete, and after it is copied to Text
	Text     []byte // what the op adds to a request
	Position int    // its position in the batch
}

// Batch is one Write: its ops, and the outcome of each. After an answer which says that the engine
// accepts nothing, it sends nothing more. It is safe for concurrent use if no two calls have the
// same entry.
type Batch struct {
	// Outcomes are the outcomes of the ops, in their order. An op without an outcome was not sent.
	Outcomes []sink.Outcome
	// Same gives ops that are held back the outcome of the answer that stopped the batch. Otherwise
	// they are Throttled.
	Same bool

	stop     atomic.Pointer[sink.Outcome] // the answer after which nothing is sent
	refusals atomic.Int64
}

// Saw takes an outcome into account. If it says that the engine accepts nothing, the unsent ops are
// held back, and Saw returns true.
func (b *Batch) Saw(o sink.Outcome) (stops bool) {
	stops = (o.Kind == sink.Throttled || o.Kind == sink.Configuration) && !o.Apart
	if stops {
		b.stop.CompareAndSwap(nil, &o)
	}
	return stops
}

// held returns the outcome of an op that must not be sent now, or false if it may be sent. After
// the context has ended, nothing is sent.
func (b *Batch) held(ctx context.Context) (sink.Outcome, bool) {
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

// Prepare returns the entries of the ops that an engine can be sent, and gives the others their
// outcome. encode makes an entry's text. Nil means that the document alone counts.
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
			b.Outcomes[i] = Late // until it is sent
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
	e.Plain = nil // or a batch would be in memory twice
	return fault
}

// All gives entries the same outcome.
func (b *Batch) All(entries []Entry, o sink.Outcome) {
	for _, e := range entries {
		b.Outcomes[e.Position] = o
	}
}

// Each sends each entry in a separate request, several at the same time.
func (b *Batch) Each(ctx context.Context, parallel int, entries []Entry, send func(Entry) sink.Outcome) {
	fanout.Runner(nil).Each(parallel, len(entries), func(i int) {
		o, held := b.held(ctx)
		if !held {
			o = send(entries[i])
			b.Saw(o)
		}
		b.All(entries[i:i+1], o)
	})
}

// Bounds limit a request. A document larger than Bytes is sent alone.
type Bounds struct {
	Documents int
	Bytes     int64
	OneIndex  bool // a request is for one index
}

// NewBounds are bounds of documents and bytes. 0 or less means 500 and 5 MB.
func NewBounds(documents int, bytes int64) Bounds {
	return Bounds{Documents: cmp.Or(max(documents, 0), 500), Bytes: cmp.Or(max(bytes, 0), 5<<20)}
}

// Cut returns how many entries, at least one, fit into a request within the bounds, and their
// bytes.
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

// Body is the texts of entries, one after the other.
func Body(entries []Entry) []byte {
	texts := make([][]byte, len(entries))
	for i, e := range entries {
		texts[i] = e.Text
	}
	return slices.Concat(texts...)
}

// Push sends entries in as few requests as the bounds allow, one after another. send makes one
// request. It returns the outcome of every op of the request, or nil if each op already got its
// outcome. ofOne says that the request was refused because of its contents.
//
// Such a request is sent again in smaller parts, until the document to blame is alone: half as many
// documents after each refusal, twice as many after each success. The bound on bytes stays small.
func (b *Batch) Push(ctx context.Context, entries []Entry, most Bounds,
	send func([]Entry) (whole *sink.Outcome, ofOne bool),
) {
	now := most
	for len(entries) > 0 {
		if held, ok := b.held(ctx); ok {
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
