package bench

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/proof/price"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// watched is the sink that every contender writes to: a search engine in memory, and who looks at
// what it shows.
type watched struct {
	sink.Sink
	clk   clock.Clock
	meter *Meter

	mu        sync.Mutex
	docs      []watchedDoc
	fresh     []time.Duration
	backwards int // an older version replaced a newer one
}

type watchedDoc struct {
	version int
	waiting []Event // whose freshness counts, sent and not yet visible
	sent    []time.Time
}

// docOf is the number of a document of the trace.
func docOf(d shard.DocID) int {
	n, _ := strconv.Atoi(d.ID()[subjectWide-12:])
	return n
}

// arrive notes that an event was sent now.
func (w *watched) arrive(e Event) {
	if !e.Waited {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	d := &w.docs[e.Doc]
	d.waiting, d.sent = append(d.waiting, e), append(d.sent, w.clk.Now())
}

// Write passes the ops on and notes what was applied.
func (w *watched) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	out := w.Sink.Write(ctx, ops)
	w.meter.count(func(c *Counts, _ *price.Usage) { c.SinkWrites += len(ops) })
	now := w.clk.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, op := range ops {
		if out[i].Kind == sink.Applied {
			v, _ := strconv.Atoi(op.Version)
			w.applied(docOf(op.Doc), v, now)
		}
	}
	return out
}

func (w *watched) applied(doc, version int, now time.Time) {
	d := &w.docs[doc]
	if version < d.version {
		w.backwards++
	}
	d.version = version
	kept := 0
	for i, e := range d.waiting {
		if e.Version <= version {
			w.fresh = append(w.fresh, now.Sub(d.sent[i]))
			continue
		}
		d.waiting[kept], d.sent[kept] = e, d.sent[i]
		kept++
	}
	d.waiting, d.sent = d.waiting[:kept], d.sent[:kept]
}

// wrong is how many documents do not show their newest version, and how many events never became
// visible.
func (w *watched) wrong(newest []int) (docs, never int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.docs {
		if w.docs[i].version != newest[i] {
			docs++
		}
		never += len(w.docs[i].waiting)
	}
	return docs, never
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
