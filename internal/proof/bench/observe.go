// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/price"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// watched is the sink of every contender: a search engine in memory, with an observer of its
// documents.
type watched struct {
	clk   clock.Clock
	meter *Meter

	mu        sync.Mutex
	engine    *memorysink.Sink
	docs      []watchedDoc
	deletes   map[removal]int // the ranks of deletes, because a delete has no content with a rank
	fresh     []time.Duration
	backwards int // how often an older state replaced a newer one
}

// removal identifies a delete in a sink.
type removal struct{ doc, version int }

// watchedDoc is the state of one document in the watched sink.
type watchedDoc struct {
	rank    int  // the rank of the state that was applied last, 0 for none
	shown   bool // whether the document exists: the last applied operation was a put
	most    int  // the greatest rank that was ever applied
	waiting []waiting
}

// waiting is an event that was sent and is not yet visible, and whose freshness counts.
type waiting struct {
	rank int
	sent time.Time
}

func newWatched(clk clock.Clock, meter *Meter, engine *memorysink.Sink, trace *Trace) *watched {
	w := &watched{
		clk: clk, meter: meter, engine: engine, docs: make([]watchedDoc, trace.Docs), deletes: map[removal]int{},
	}
	for _, e := range trace.Events {
		if e.Delete {
			w.deletes[removal{e.Doc, e.Version}] = e.Rank
			reasserted := removal{e.Doc, 0} // a delete that is written again names no version
			w.deletes[reasserted] = max(w.deletes[reasserted], e.Rank)
		}
	}
	return w
}

// arrive notes that an event is sent now.
func (w *watched) arrive(e Event) {
	if !e.Waited {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	d := &w.docs[e.Doc]
	d.waiting = append(d.waiting, waiting{e.Rank, w.clk.Now()})
}

// now returns the current engine.
func (w *watched) now() *memorysink.Sink {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.engine
}

// Ping pings the engine.
func (w *watched) Ping(ctx context.Context) error { return w.now().Ping(ctx) }

// Write passes the operations to the engine and notes which of them were applied.
func (w *watched) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	out := w.now().Write(ctx, ops)
	w.meter.count(func(c *Counts, _ *price.Usage) { c.SinkWrites += len(ops) })
	now := w.clk.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, op := range ops {
		if out[i].Kind == sink.Applied {
			w.applied(op, now)
		}
	}
	return out
}

func (w *watched) applied(op sink.Op, now time.Time) {
	doc, rank := docOf(op.Doc.ID()), int(gjson.GetBytes(op.Document, "rank").Int())
	d := &w.docs[doc]
	d.shown = op.Kind == shard.Put
	if !d.shown {
		version, _ := strconv.Atoi(op.Version)
		rank = w.deletes[removal{doc, version}]
	}
	if rank < d.rank {
		w.backwards++
	}
	d.rank, d.most = rank, max(d.most, rank)
	d.waiting = slices.DeleteFunc(d.waiting, func(e waiting) bool {
		if e.rank <= rank {
			w.fresh = append(w.fresh, now.Sub(e.sent))
		}
		return e.rank <= rank
	})
}

// image takes a snapshot of w. The function restore sets w back to the snapshot.
func (w *watched) image() (restore func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	engine, docs := w.engine.Copy(), slices.Clone(w.docs)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.engine = engine
		for i := range docs {
			w.docs[i].rank, w.docs[i].shown = docs[i].rank, docs[i].shown
		}
	}
}

// End counts what is wrong in the sink at the end of a run.
type End struct {
	Wrong       int // documents in the sink that are not in their newest state
	Resurrected int // wrong documents that were deleted and exist again
	Lost        int // wrong documents whose newest state was never written
	Never       int // events whose freshness counts, and that never became visible, directly or through a newer state
}

// end compares the sink with the newest state of every document.
func (w *watched) end(newest []Event) (end End) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, d := range w.docs {
		n := newest[i]
		end.Never += len(d.waiting)
		switch {
		case n.Delete && !d.shown, !n.Delete && d.shown && d.rank == n.Rank:
			continue
		case n.Delete:
			end.Resurrected++
		}
		end.Wrong++
		if d.most < n.Rank {
			end.Lost++
		}
	}
	return end
}

// Freshness is a sorted list of durations from sent to visible.
type Freshness []time.Duration

// At returns the smallest value that at least this share of all values does not exceed, or 0 if
// there are none.
func (f Freshness) At(share float64) time.Duration {
	if len(f) == 0 {
		return 0
	}
	i := int(share*float64(len(f))+0.999999) - 1
	return f[min(max(i, 0), len(f)-1)]
}
