package exchange

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/sink"
)

// maxRefusals is how many refusals one Write goes on after while it looks for whom to blame.
// Finding one document among 500 takes about 17 requests.
const maxRefusals = 32

// Entry is one op as it stands in a request.
type Entry struct {
	sink.Op
	Index    string
	Plain    []byte // the document as every sink holds it; nil for a delete, and once it is in Text
	Text     []byte // what the op adds to a request
	Position int    // its position in the batch
}

// Batch is one Write: its ops, and what became of each. It sends nothing more once an answer says
// that the engine takes nothing. It is safe for concurrent use, as long as no two calls have the
// same entry.
type Batch struct {
	// Outcomes are those of the ops, in their order. An op that nothing was said of was not sent.
	Outcomes []sink.Outcome
	// Same gives what is held back the outcome of the answer that says so. Otherwise it is Throttled.
	Same bool

	stop     atomic.Pointer[sink.Outcome] // the answer after which nothing is sent
	refusals atomic.Int64
}

// Saw takes an outcome into account. One that says that the engine takes nothing holds back what is
// not sent yet, and Saw returns true.
func (b *Batch) Saw(o sink.Outcome) (stops bool) {
	stops = (o.Kind == sink.Throttled || o.Kind == sink.Configuration) && !o.Apart
	if stops {
		b.stop.CompareAndSwap(nil, &o)
	}
	return stops
}

// held is the outcome of an op that must not be sent now; false where it may be. Nothing is sent
// once the context has ended.
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

// Each sends each entry in a request of its own, several at the same time.
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

// Bounds are what a request may have. A document larger than Bytes goes alone.
type Bounds struct {
	Documents int
	Bytes     int64
	OneIndex  bool // a request is for one index
}

// NewBounds are bounds of documents and bytes. 0 or less means 500 and 5 MB.
func NewBounds(documents int, bytes int64) Bounds {
	return Bounds{Documents: cmp.Or(max(documents, 0), 500), Bytes: cmp.Or(max(bytes, 0), 5<<20)}
}

// Cut is how many of the entries, one at least, make a request within the bounds, and its bytes.
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
// request. Its outcome is that of every op of the request; nil where each got its own. ofOne says
// that the request was refused for what is in it.
//
// Such a request is sent again in smaller parts, until the document to blame is alone: half as many
// documents after each refusal, twice as many after each success. What one request may hold of
// bytes stays small.
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
