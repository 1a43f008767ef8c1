// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"hash/fnv"
	"strings"
	"testing"

	lull "github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/pipeline/receive"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// clumsy is a sink client and a source with code that panics on some versions. The code panics
// before a request is sent, after the answer, in decoders and in projections.
type clumsy struct {
	w *World
	sink.Sink
	source index.Source
}

// bad reports whether this version makes the code panic at this place. Some versions do, until the
// injected failures end.
func (c clumsy) bad(doc shard.DocID, key shard.OrderKey, where uint32) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(string(doc) + string(key))) // a hash never returns an error
	return !c.w.calm && h.Sum32()%24 == where
}

func (c clumsy) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	for _, op := range ops {
		if c.bad(op.Doc, op.Key, 0) {
			panic("before the request")
		}
	}
	out := c.Sink.Write(ctx, ops)
	for _, op := range ops {
		if c.bad(op.Doc, op.Key, 1) {
			panic("after the request")
		}
	}
	return out
}

func (c clumsy) DecodeContext(ctx context.Context, m queue.Message) []lull.Result {
	results := c.source.DecodeContext(ctx, m)
	for _, r := range results {
		if m.ReceiveCount == 1 && c.bad(r.Event.Doc, r.Event.Key, 2) {
			panic("decode")
		}
	}
	return results
}

func (c clumsy) Document(m queue.Message, e lull.Event) ([]byte, error) {
	if c.bad(e.Doc, e.Key, 3) {
		panic("document")
	}
	return c.source.Document(m, e)
}

// clumsyWorld returns the simulated run of a seed in which code panics.
func clumsyWorld(t testing.TB, seed uint64, notes journal.Journal) *World {
	c := &clumsy{}
	w := build(t, seed, Swarm, func(o *Options) {
		o.Hooks.Receive = func(h *receive.Handler) {
			if s, ok := h.Sources.(index.Source); ok {
				h.Sources = clumsy{w: c.w, source: s}
			}
		}
		o.Hooks.Index = func(h *index.Handler) {
			h.Sink, h.Sources = clumsy{w: c.w, Sink: h.Sink}, clumsy{w: c.w, source: h.Sources}
		}
		o.Journal = notes
	})
	c.w, w.settings = w, nil // the client hides the requests with which index checks an engine's settings
	return w
}

// TestEveryPromiseHoldsBesideCodeThatPanics: code panics on some documents. No document may go
// back, no event may be lost, and all other documents must be written.
func TestEveryPromiseHoldsBesideCodeThatPanics(t *testing.T) {
	t.Parallel()
	got := map[string]int{}
	hold(t, 600, Swarm, func(seed uint64) *World {
		return clumsyWorld(t, seed, counting(func(n journal.Note) {
			dead := n.Step == journal.DeadLettered && strings.HasPrefix(n.Detail, "panic: ")
			if dead || n.Step == journal.Panicked {
				got[n.Detail]++
			}
		}))
	})
	if t.Log(got); seeds(600) == 600 && len(got) < 5 {
		t.Errorf("only %v: no simulated run reaches the other places", got)
	}
}

type counting func(journal.Note)

func (c counting) Note(n journal.Note) { c(n) }
