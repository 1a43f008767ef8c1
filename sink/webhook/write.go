package webhook

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/exchange"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/sink"
)

// maxRefusals is how many answers that refuse several documents for what is in them one Write goes
// on after.
const maxRefusals = 32

// batch is one Write.
type batch struct {
	s        *Sink
	outcomes []sink.Outcome
	brake    exchange.Brake
	refusals atomic.Int64
}

// Write sends the ops, several requests at the same time; see sink.Sink. After an answer that says
// that the receiver takes nothing, the rest is not sent.
func (s *Sink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	b := &batch{s: s, outcomes: make([]sink.Outcome, len(ops))}
	var entries []entry
	for i, op := range ops {
		if held, ok := b.brake.Held(ctx); ok {
			b.outcomes[i] = held
			continue
		}
		e, refused := encode(i, op)
		if refused != nil {
			b.outcomes[i] = *refused
			continue
		}
		entries = append(entries, e)
	}
	parts := s.parts(entries)
	if len(parts) > 0 {
		fanout.Runner(nil).Each(s.Parallel, len(parts), func(i int) { b.push(ctx, parts[i]) })
	}
	return b.outcomes
}

// parts cuts entries into what requests have.
func (s *Sink) parts(entries []entry) (parts [][]entry) {
	begin, size := 0, int64(0)
	for i, e := range entries {
		next := size + int64(len(e.text))
		if i > begin && (i-begin == s.BulkDocuments || next > s.BulkBytes) {
			parts = append(parts, entries[begin:i])
			begin, next = i, int64(len(e.text))
		}
		size = next
	}
	if begin < len(entries) {
		parts = append(parts, entries[begin:])
	}
	return parts
}

// push sends entries in one request, or in several where they are refused for what is in them.
func (b *batch) push(ctx context.Context, entries []entry) {
	if held, ok := b.brake.Held(ctx); ok {
		b.all(entries, held)
		return
	}
	a := b.s.post(ctx, typeDocuments, entries)
	o, ofOne := b.s.whole(a)
	if late, ok := exchange.Late(ctx, a); ok {
		o, ofOne = late, false
	}
	switch {
	case o.Kind == sink.Applied:
		b.read(a, entries)
	case !ofOne:
		b.all(entries, o)
		b.brake.Saw(o)
	case len(entries) == 1:
		b.all(entries, o)
	case b.refusals.Add(1) > maxRefusals:
		b.all(entries, sink.Outcome{Kind: sink.Throttled, Apart: true, Status: o.Status, Reason: classNotNarrowed})
	default:
		half := len(entries) / 2
		b.push(ctx, entries[:half])
		b.push(ctx, entries[half:])
	}
}

func (b *batch) all(entries []entry, o sink.Outcome) {
	for _, e := range entries {
		b.outcomes[e.op] = o
	}
}

// read takes the outcomes from an answer that says success: of each document where the answer has
// results, otherwise of all of them.
func (b *batch) read(a exchange.Answer, entries []entry) {
	var answer struct {
		Results []struct {
			Status int `json:"status"`
		} `json:"results"`
	}
	var named struct {
		Results json.RawMessage `json:"results"`
	}
	applied := sink.Outcome{Kind: sink.Applied, Status: a.Status}
	if json.Unmarshal(a.Body, &named) != nil || len(named.Results) == 0 {
		b.all(entries, applied)
		return
	}
	if json.Unmarshal(a.Body, &answer) != nil || len(answer.Results) != len(entries) {
		b.all(entries, sink.Outcome{Kind: sink.Unknown, Status: a.Status, Reason: classMismatch})
		return
	}
	after := backoff.After(a.Header, time.Now())
	for i, e := range entries {
		b.outcomes[e.op] = b.s.item(e.kind, answer.Results[i].Status, after)
	}
}
