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

// watched is the sink that every contender writes to: a search engine in memory, and who looks at
// what it shows.
type watched struct {
	clk   clock.Clock
	meter *Meter

	mu        sync.Mutex
	engine    *memorysink.Sink
	docs      []watchedDoc
	deletes   map[removal]int // their ranks: a delete has no content to carry one
	fresh     []time.Duration
	backwards int // an older state replaced a newer one
}

// removal is how a delete looks in a sink.
type removal struct{ doc, version int }

// watchedDoc is a document.
type watchedDoc struct {
	rank    int  // of what was applied last, 0 for nothing
	shown   bool // the document is there: what was applied last was a put
	most    int  // the greatest rank that was ever applied
	waiting []waiting
}

// waiting is an event whose freshness counts, sent and not yet visible.
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
			reasserted := removal{e.Doc, 0} // names no version
			w.deletes[reasserted] = max(w.deletes[reasserted], e.Rank)
		}
	}
	return w
}

// arrive notes that an event was sent now.
func (w *watched) arrive(e Event) {
	if !e.Waited {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	d := &w.docs[e.Doc]
	d.waiting = append(d.waiting, waiting{e.Rank, w.clk.Now()})
}

// now is the engine at this moment.
func (w *watched) now() *memorysink.Sink {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.engine
}

// Ping asks the engine.
func (w *watched) Ping(ctx context.Context) error { return w.now().Ping(ctx) }

// Write passes the ops on and notes what was applied.
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

// image is a snapshot to go back to.
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

// End is what is wrong in the sink when nothing moves any more.
type End struct {
	Wrong       int // documents that do not show their newest state
	Resurrected int // of them: that were deleted and are there
	Lost        int // of them: whose newest state was never written
	Never       int // events whose freshness counts and that never became visible, nor anything newer
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

// Freshness is a sorted list of times from sent to visible.
type Freshness []time.Duration

// At is the least value that at least that share of all does not exceed, 0 for none.
func (f Freshness) At(share float64) time.Duration {
	if len(f) == 0 {
		return 0
	}
	i := int(share*float64(len(f))+0.999999) - 1
	return f[min(max(i, 0), len(f)-1)]
}
