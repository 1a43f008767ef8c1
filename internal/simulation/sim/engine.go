// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// engine is a simulated search engine. The in-memory sink has the documents. The engine adds
// delays, refusals, partial failures and late requests.
type engine struct {
	w    *World
	name string // the name of the sink
	kind memorysink.Settings
	docs *memorysink.Sink
	// settle is how long the engine may still apply a request after lull hung up. If settle is not
	// 0, the sink has no versions.
	settle  time.Duration
	applied map[shard.DocID]time.Duration
	refuses map[version]int // how often the engine still refuses a version
	room    capacity
	through time.Duration // when the engine will have finished all accepted requests
	made    int           // how many indices the engine has created so far
}

// version is one version of one document.
type version struct {
	doc shard.DocID
	key shard.OrderKey
}

// lateness limits how late a sink with versions applies a request. Fences allow any lateness, but
// it must be shorter than the time for which the sink remembers deletes.
const lateness = 20 * time.Second

// row returns the row of a document as the oracle and this store name it. Clients of the engine
// name documents without a sink.
func (e *engine) row(doc shard.DocID) shard.DocID {
	row, _ := e.w.cfg.RowAt(doc, e.name)
	return row
}

func newEngine(w *World, name string, versions bool, settle, forget time.Duration) *engine {
	e := &engine{
		w: w, name: name, settle: settle, room: newCapacity(w.options.Strain, w.dice),
		applied: map[shard.DocID]time.Duration{},
		refuses: map[version]int{}, kind: memorysink.Settings{Versions: versions, ForgetAfter: forget},
	}
	e.docs = e.newDocs()
	return e
}

func (e *engine) newDocs() *memorysink.Sink {
	e.made++
	e.kind.Generation = fmt.Sprint("index-", e.made)
	return memorysink.New(trueClock{&e.w.scheduler}, e.kind)
}

// answer applies or refuses one item now, and returns its outcome.
func (e *engine) answer(op sink.Op, under *grant) sink.Outcome {
	w, r := e.w, &e.w.rates
	v := version{op.Doc, op.Key}
	if w.options.Monitor != nil {
		if out, broken := w.options.Monitor.Write(op); broken {
			return out
		}
	}
	if w.settings.applies(w.now, op) {
		return w.settings.says
	}
	switch p := w.poisons[version{op.Doc.Plain(), op.Key}]; {
	case p == rejected:
		return sink.Outcome{Kind: sink.Rejected, Status: 400, Reason: "mapper_parsing_exception: field title"}
	case p == refused || e.refuses[v] > 0 || w.strikes("item refused", r.ItemRefused):
		if e.refuses[v] > 0 {
			e.refuses[v]--
		}
		return sink.Outcome{Kind: sink.Refused, Status: 500, Reason: "item failed"}
	case w.strikes("item throttled", r.ItemThrottle), e.hot(op.Doc), !e.takes():
		w.timeline.now().Throttled++
		return sink.Outcome{Kind: sink.Throttled, Status: 429, Reason: "es_rejected_execution"}
	}
	out := e.docs.Write(background, []sink.Op{op})[0]
	w.counts.Items++
	w.oracle.answered(op, under, out)
	if out.Kind == sink.Applied {
		w.counts.Applied++
		w.timeline.now().Written++
		e.applied[op.Doc] = w.now
	}
	return out
}

// takes reports whether the sink accepts one more document now.
func (e *engine) takes() bool {
	done, ok := e.room.take(e.w.now)
	e.through = max(e.through, done)
	return ok
}

// hot reports whether the document was written too recently. Some engines limit the updates of one
// document.
func (e *engine) hot(doc shard.DocID) bool {
	at, written := e.applied[doc]
	return written && e.w.now-at < e.w.rates.DocumentPause
}

// engineReader is the engine as a reader calls it.
type engineReader struct {
	v *invocation
	e *engine
}

var _ sink.Reader = engineReader{}

func (r engineReader) Get(ctx context.Context, doc shard.DocID) (s sink.Stored, found bool, err error) {
	err = r.v.request(ctx, fault.Search, 0, func() { s, found, _ = r.e.docs.Get(background, r.e.row(doc)) })
	s.Doc = s.Doc.Plain()
	return s, found, err
}

func (r engineReader) All(ctx context.Context, f func(sink.Stored) error) error {
	var all []sink.Stored
	err := r.v.request(ctx, fault.Search, 0, func() {
		_ = r.e.docs.All(background, func(s sink.Stored) error {
			s.Doc = s.Doc.Plain()
			all = append(all, s)
			return nil
		})
	})
	for i := 0; i < len(all) && err == nil; i++ {
		err = f(all[i])
	}
	return err
}

func (r engineReader) Search(context.Context, sink.Query) ([]sink.Stored, error) { return nil, nil }

// engineClient is the engine as one invocation calls it.
type engineClient struct{ engineReader }

func (c engineClient) Ping(ctx context.Context) error {
	err := c.v.request(ctx, fault.Search, 0, func() {})
	if err == nil && c.v.w.options.Strain.PingDenied {
		return sink.ErrDenied
	}
	return err
}

// spaced is the largest request whose items are applied one after the other. The items of a larger
// request are applied at once.
const spaced = 16

// Write is one bulk request. The items of a request are applied one after the other. Some items may
// be applied although the answer does not say so. All items may be applied long after the caller
// stopped waiting.
func (c engineClient) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	c.v.w.oracle.counted(c.v, len(ops))
	return c.write(ctx, ops)
}

func (c engineClient) write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	v, w, r := c.v, c.v.w, &c.v.w.rates
	ops = slices.Clone(ops)
	for i := range ops {
		ops[i].Doc = c.e.row(ops[i].Doc)
	}
	out := make([]sink.Outcome, len(ops))
	for i := range out {
		out[i] = sink.Outcome{Kind: sink.Unknown, Reason: "time-out"}
	}
	if ctx.Err() != nil {
		return out
	}
	if w.strikes("stall", r.Stall) && v.pause(w.dice.upTo(r.StallBy)) != nil {
		return out // killed before the request was sent
	}
	if w.strikes("items not sent", r.NotSent) {
		kept := w.dice.IntN(len(ops))
		for i := kept; i < len(ops); i++ {
			out[i] = sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: "not_sent"}
		}
		if kept == 0 {
			return out
		}
		return append(c.write(ctx, ops[:kept]), out[kept:]...)
	}
	w.counts.Requests++
	end, _ := ctx.Deadline()
	under := w.oracle.sent(v, ops)
	w.watchOps(v, Sent, ops)
	late := c.e.settle
	if late == 0 {
		late = lateness
	}
	there, back := w.travel(fault.Search), w.travel(fault.Search)
	if w.strikes("sink late", r.SinkLate) {
		there += w.dice.upTo(max(end.Sub(epoch)-w.now, 0) + late)
	}
	fails := len(ops)
	if w.strikes("sink error", r.SinkError) {
		fails = w.dice.IntN(len(ops) + 1) // this item and all later items are not applied
	}
	if w.killers(ops) {
		fails = 0
	}
	answers := make([]sink.Outcome, len(ops))
	through := time.Duration(0)
	apply := func(from, to int) {
		dead := v.over && w.now > v.hungUp+late // the connection was closed long ago
		for i := from; i < to && i < fails && !dead; i++ {
			if answers[i] = c.e.answer(ops[i], under[i]); answers[i].Kind == sink.Applied {
				carried(ctx, i)
			}
			w.watch(v, Step{What: Answered, Op: ops[i], Outcome: answers[i]})
			through = c.e.through
		}
		if to == len(ops) {
			w.oracle.landed(under)
			w.watchOps(v, Landed, ops)
		}
	}
	took := time.Duration(0)
	if len(ops) <= spaced {
		for i := range ops {
			w.after(there+took, func() { apply(i, i+1) })
			took += w.dice.upTo(time.Millisecond)
		}
	} else {
		w.after(there, func() { apply(0, len(ops)) })
	}
	err := v.await(ctx, w.now+there+took+back)
	if err == nil && through > w.now {
		err = v.await(ctx, through)
	}
	switch {
	case err != nil:
		return out
	case fails < len(ops) && w.dice.chance(0.5): // a useless answer, such as status 5xx or an incomplete body
		return out[:oneOf(w.dice, len(out), fails)]
	}
	for i := range answers {
		if i < fails {
			out[i] = answers[i]
		} else {
			out[i].Reason = "503"
		}
	}
	return out
}
