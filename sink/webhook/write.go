package webhook

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/exchange"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/sink"
)

// Write sends the ops, several requests at the same time; see sink.Sink. After an answer that says
// that the receiver takes nothing, the rest is not sent.
func (s *Sink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	var b exchange.Batch
	most := exchange.NewBounds(s.BulkDocuments, s.BulkBytes)
	var parts [][]exchange.Entry
	for entries := b.Prepare(ctx, ops, sink.Names{}, encode); len(entries) > 0; {
		n, _ := most.Cut(entries)
		parts, entries = append(parts, entries[:n]), entries[n:]
	}
	fanout.Runner(nil).Each(s.Parallel, len(parts), func(i int) {
		b.Push(ctx, parts[i], most, func(part []exchange.Entry) (whole *sink.Outcome, ofOne bool) {
			return s.send(ctx, &b, part)
		})
	})
	return b.Outcomes
}

// send makes one request; see exchange.Batch.Push.
func (s *Sink) send(ctx context.Context, b *exchange.Batch, entries []exchange.Entry) (
	whole *sink.Outcome, ofOne bool,
) {
	a := s.post(ctx, typeDocuments, entries)
	o, ofOne := s.whole(ctx, a)
	if o.Kind == sink.Applied {
		s.read(a, b, entries)
		return nil, false
	}
	return &o, ofOne
}

// read takes the outcomes from an answer that says success: of each document where the answer has
// results, otherwise of all of them.
func (s *Sink) read(a exchange.Answer, b *exchange.Batch, entries []exchange.Entry) {
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
		b.All(entries, applied)
		return
	}
	if json.Unmarshal(a.Body, &answer) != nil || len(answer.Results) != len(entries) {
		b.All(entries, sink.Outcome{Kind: sink.Unknown, Status: a.Status, Reason: classMismatch})
		return
	}
	after := backoff.After(a.Header, time.Now())
	for i, e := range entries {
		b.Outcomes[e.Position] = s.item(e.Kind, answer.Results[i].Status, after)
	}
}
