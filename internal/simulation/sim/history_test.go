// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/dlq"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/pipeline/receive"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// History is the list of calls and answers for every document's row and for the sink. A check of
// linearizability uses it.
type History struct {
	Rows  []*RowCall
	Sinks []*SinkCall

	w     *World
	clock int64
}

// Span is the client of a call, and the call's time. Times are numbers, and no two are the same.
type Span struct {
	Client       int64
	Call, Return int64 // 0 if no answer arrived
	Done         int64 // when the service carried the call out; 0 if the service never did
}

// RowCall is one conditional write or one consistent read, as its caller sees it.
type RowCall struct {
	Span
	Write   shard.Write // only Doc is set for a read
	Read    bool
	Row     shard.Row // the row in the answer: the row before the write, the row of a refusal, or the row that was read
	Refused bool
}

// SinkCall is one document of a bulk request, or a search for one document.
type SinkCall struct {
	Span
	Doc   shard.DocID
	Read  bool
	Key   shard.OrderKey // the version that was written
	Kind  shard.Operation
	Found string // the printed key of the version that a search found; empty for none
}

// recorded returns the simulated run of a seed, and records its history.
func recorded(t testing.TB, seed uint64, level Level) *History {
	t.Helper()
	h := &History{}
	h.w = build(t, seed, level, func(o *Options) {
		o.Hooks = Hooks{
			Receive: func(r *receive.Handler) { r.Shards = recordedStore{r.Shards, h, r.Journal} },
			Index: func(i *index.Handler) {
				i.Shards = recordedStore{i.Shards, h, i.Journal}
				i.Sink = recordedSink{asked(i.Sink), h, i.Journal}
			},
			Dlq:   func(d *dlq.Handler) { d.Shards = recordedStore{d.Shards, h, d.Journal} },
			Desk:  func(s *redrive.Service) { s.Shards = recordedStore{s.Shards, h, s.Journal} },
			Prune: func(p *prune.Pruner) { p.Shards = recordedStore{p.Shards, h, p.Journal} },
		}
	})
	h.w.after(0, h.searching)
	return h
}

func (h *History) tick() int64 {
	h.clock++
	return h.clock
}

// call begins a call. The journal identifies the invocation that makes the call.
func (h *History) call(by journal.Journal) Span {
	v, ok := by.(*invocation)
	if !ok {
		panic(fmt.Sprintf("a %T is not an invocation", by))
	}
	return Span{Client: v.ID, Call: h.tick()}
}

type recordedStore struct {
	shard.Store
	h  *History
	by journal.Journal
}

func (s recordedStore) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if !w.Doc.IsDocument() {
		return s.Store.Write(ctx, w)
	}
	call := &RowCall{Span: s.h.call(s.by), Write: w}
	s.h.Rows = append(s.h.Rows, call)
	old, err := s.Store.Write(context.WithValue(ctx, carriedOut{}, func(int) { call.Done = s.h.tick() }), w)
	call.Row = old
	refused, isRefused := shard.AsRefused(err)
	if isRefused {
		call.Refused, call.Row = true, refused.Row
	}
	if isRefused || err == nil {
		call.Return = s.h.tick()
	}
	return old, err
}

func (s recordedStore) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	span := s.h.call(s.by)
	rows, err := s.Store.Read(ctx, docs, c)
	if err != nil || c == shard.Eventual {
		return rows, err
	}
	for i, doc := range docs {
		if doc.IsDocument() {
			span.Return = s.h.tick()
			s.h.Rows = append(s.h.Rows, &RowCall{Span: span, Write: shard.Write{Doc: doc}, Read: true, Row: rows[i]})
		}
	}
	return rows, err
}

type recordedSink struct {
	readable
	h  *History
	by journal.Journal
}

func (s recordedSink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	span, calls := s.h.call(s.by), make([]*SinkCall, len(ops))
	for i, op := range ops {
		calls[i] = &SinkCall{Span: span, Doc: op.Doc, Key: op.Key, Kind: op.Kind}
	}
	s.h.Sinks = append(s.h.Sinks, calls...)
	out := s.readable.Write(context.WithValue(ctx, carriedOut{}, func(n int) { calls[n].Done = s.h.tick() }), ops)
	for i := range ops {
		if len(out) == len(ops) && out[i].Kind == sink.Applied {
			calls[i].Return = s.h.tick()
		}
	}
	return out
}

// searching looks documents up from time to time, as a user would.
func (h *History) searching() {
	const every = 700 * time.Millisecond
	w := h.w
	if w.now > w.options.Upstream.Calm+2*time.Minute {
		return // little happens after this moment
	}
	w.after(w.dice.upTo(every), h.searching)
	docs := slices.DeleteFunc(w.oracle.sorted(), func(d shard.DocID) bool { return !d.IsDocument() })
	if len(docs) == 0 {
		return
	}
	call := &SinkCall{Doc: oneOf(w.dice, docs...), Read: true, Span: Span{Client: -1 - h.clock, Call: h.tick()}}
	w.after(w.travel(fault.Search), func() {
		stored, _, _ := w.pipeOf(call.Doc).engine.docs.Get(background, call.Doc) // fails only if its context ends
		call.Found = stored.Key
		w.after(w.travel(fault.Search), func() {
			call.Return = h.tick()
			h.Sinks = append(h.Sinks, call)
		})
	})
}

// HasDied reports whether any version of a document was a dead letter. The sink's content then
// depends on which versions it refused.
func (w *World) HasDied(doc shard.DocID) bool {
	for _, e := range w.oracle.events {
		if e.doc == doc && e.died {
			return true
		}
	}
	return false
}
