// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/pipeline/receive"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// fanOut gives a second sink to the collection of the default events.
func fanOut(cfg *config.Config) {
	versions := true
	cfg.Sinks["vectors"] = config.Sink{Kind: "memory", Versions: &versions}
	cfg.DefaultSink, cfg.DefaultCollection, cfg.Queues.Elsewhere = "search", "content", ""
	cfg.Collections = map[string]config.Collection{"content": {Sinks: []string{"search", "vectors"}}}
}

// TestEverySinkOfACollectionHoldsEveryPromise: whatever fails, each sink of a collection keeps each
// promise for its own rows. A topic sends every message to the queues of both sinks. Some messages
// belong to collections with one sink.
func TestEverySinkOfACollectionHoldsEveryPromise(t *testing.T) {
	t.Parallel()
	written := map[string]int{} // the number of documents, by the sink that their row names
	for seed := uint64(1); seed <= seeds(2000) && !t.Failed(); seed++ {
		if !widthOf(seed).second {
			continue
		}
		w := wide(t, seed, func(o *Options) {
			o.Config.Collections["content"] = config.Collection{Sinks: []string{"search", "archive"}}
			o.Config.Collections["news"] = config.Collection{Sinks: []string{"archive", "search"}}
			o.Config.Queues.Elsewhere = config.ElsewhereSkip
		})
		report(t, w.Run(), Wide)
		for doc, l := range w.oracle.docs {
			if l.committed != "" {
				written[doc.Sink()]++
			}
		}
	}
	if written[""] == 0 || written["search"] == 0 || written["archive"] == 0 {
		t.Errorf("committed documents by sink: %v, want some of the first sinks and some of each other", written)
	}
}

// TestWhatOneSinkOfACollectionLostIsSentAgain: if one of two sinks loses documents, the source
// sends them again. If the source does not, the oracle must report the loss also for the second
// sink.
func TestWhatOneSinkOfACollectionLostIsSentAgain(t *testing.T) {
	t.Parallel()
	restored := func(seed uint64, silent bool) *World {
		w := build(t, seed, Swarm, func(o *Options) { fanOut(o.Config) })
		at := w.options.Upstream.Calm / 2
		w.await(&Disaster{Loss: SinkRestored, Backup: at / 2, At: at, Silent: silent})
		return w
	}
	hold(t, 300, Swarm, func(seed uint64) *World { return restored(seed, false) })
	second := func(v Violation) bool { return strings.Contains(v.Detail, "@vectors#") }
	told := false
	for seed := uint64(1); seed <= 20 && !told; seed++ {
		told = slices.ContainsFunc(restored(seed, true).Run().Violations, second)
	}
	if !told {
		t.Error("no oracle reports that the second sink lacks the lost documents")
	}
}

func TestAVersionThatFailsRequestsDoesSoInEachSink(t *testing.T) {
	t.Parallel()
	w := story{cfg: fanOut, sent: []line{{0, []change{{version: 1, poison: kills}}}}}.world(t, 1)
	for v := range w.poisons {
		for _, row := range w.cfg.RowsOf(v.doc) {
			if !w.killers([]sink.Op{{Doc: row, Key: v.key}}) {
				t.Errorf("a request with %s does not fail", row)
			}
		}
	}
}

// A simulated load is the stack's own: the settings of a part must not make dead letters of it.
func TestAPartIsSimulatedLikeAWholeStack(t *testing.T) {
	t.Parallel()
	run := func(parts config.Parts) Result {
		return begin(t, Options{
			Config: settings(t, true, func(cfg *config.Config) { cfg.Stack, cfg.Parts = "lull-2", parts }), Seed: 1,
			Faults: NoFaults, Pollers: 2, Upstream: Steady(1, 2, 20, time.Minute),
		}).Run()
	}
	whole, part := run(config.Parts{Of: 1}), run(config.Parts{Of: 4, This: 2})
	if part.Hash != whole.Hash || len(part.Letters) > 0 || part.Counts.Applied == 0 {
		t.Errorf("got %d dead letters, %d writes and another trace, want the same run", len(part.Letters),
			part.Counts.Applied)
	}
}

// outcome is the result of a run in which one of a collection's two sinks was down for an hour.
type outcome struct {
	Result
	during map[string]int           // documents written during the outage, by sink
	oldest map[string]time.Duration // the age of the oldest document that was written in the whole run, by sink
}

const downFrom, downTo = 10 * time.Minute, 70 * time.Minute

// oneDown simulates the outage of one sink, with the changes of a mutant.
func oneDown(t *testing.T, hooks func(w **World) Hooks) outcome {
	t.Helper()
	out := outcome{during: map[string]int{}, oldest: map[string]time.Duration{}}
	var w *World
	o := Options{
		Config: settings(t, true, fanOut), Seed: 1, Faults: NoFaults, Pollers: 2,
		Upstream: Steady(1, 2, 100, downTo+10*time.Minute),
		Watch: func(s Step) {
			if s.What == Answered && s.Outcome.Kind == sink.Applied && downFrom <= w.now && w.now < downTo {
				out.during[w.cfg.SinkOf(s.Op.Doc)]++
			}
		},
	}
	if hooks != nil {
		o.Hooks = hooks(&w)
	}
	w = begin(t, o)
	w.outages = []outage{{service: fault.Search, from: downFrom, to: downTo, of: w.pipeNamed("search")}}
	out.Result = w.Run()
	for name, fresh := range w.freshIn {
		out.oldest[name] = slices.Max(fresh)
	}
	return out
}

// isolated reports whether the sink vectors continued as if the sink search had no outage.
func (o outcome) isolated() bool {
	d := config.Default().Debounce
	return len(o.Violations) == 0 && o.during["search"] == 0 && o.during["vectors"] > 1000 &&
		o.oldest["vectors"] <= d.MaxWait+d.CapGrace+5*time.Second && o.oldest["search"] >= downTo-downFrom
}

func TestASinkThatIsDownForAnHourKeepsNoOtherFromBeingFresh(t *testing.T) {
	t.Parallel()
	got := oneDown(t, nil)
	report(t, got.Result, NoFaults)
	if !got.isolated() {
		t.Errorf("written while search was down: %v; the least fresh: %v", got.during, got.oldest)
	}
	if got.Settled > 5*time.Minute {
		t.Errorf("settled %s after the end", got.Settled)
	}
}

// TestSinksThatShareAnythingAreNotIsolated: sinks are isolated because each has its own health row,
// document rows and messages. If two sinks share one of these, the check of the test above must
// fail.
func TestSinksThatShareAnythingAreNotIsolated(t *testing.T) {
	t.Parallel()
	for name, hooks := range map[string]func(w **World) Hooks{
		"one health row": func(**World) Hooks {
			return Hooks{
				Receive: func(h *receive.Handler) { h.Shards = oneHealth{h.Shards} },
				Index:   func(h *index.Handler) { h.Shards = oneHealth{h.Shards} },
			}
		},
		"one row of a document": func(w **World) Hooks {
			shared := func(cfg *config.Config, sink string) *config.Config {
				c := *cfg
				c.Collections = map[string]config.Collection{"content": {Sink: sink}}
				return &c
			}
			return Hooks{
				Receive: func(h *receive.Handler) { h.Sources, h.Config = (*w).sources, shared(h.Config, h.Sink) },
				Index:   func(h *index.Handler) { h.Sources, h.Config = (*w).sources, shared(h.Config, h.SinkName) },
			}
		},
		"the rows of the first sink in the queue of the other": func(w **World) Hooks {
			return Hooks{Receive: func(h *receive.Handler) { h.Sources = (*w).sources.At("search") }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := oneDown(t, hooks)
			if got.isolated() {
				t.Errorf("the check does not notice it: written while search was down: %v; the least fresh: %v", got.during, got.oldest)
			}
		})
	}
}

// oneHealth makes both sinks share one health row.
type oneHealth struct{ shard.Store }

func (s oneHealth) of(doc shard.DocID) shard.DocID {
	if doc == shard.HealthRow("vectors") {
		return shard.HealthRow("search")
	}
	return doc
}

func (s oneHealth) Read(ctx context.Context, docs []shard.DocID, how shard.Consistency) ([]shard.Row, error) {
	docs = slices.Clone(docs)
	for i := range docs {
		docs[i] = s.of(docs[i])
	}
	return s.Store.Read(ctx, docs, how)
}

func (s oneHealth) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	w.Doc = s.of(w.Doc)
	return s.Store.Write(ctx, w)
}

// backfill runs an operator's backfill of a sink from another sink, a few rows at a time, until no
// row is in motion. Each step may be killed at any I/O.
func (w *World) backfill(order operate.BackfillOrder, tries int) {
	var step operate.BackfillStep
	var err error
	w.invoke("operator", w.cfg.Index.SinkDeadline+5*time.Second, func(ctx context.Context, v *invocation) {
		o := w.operate(v, nil)
		step, err = o.API().Backfill(ctx, order)
	}, func(died error) {
		begun := slices.ContainsFunc(
			slices.Collect(w.table.rows.All()),
			func(r shard.Row) bool { return r.Flight == "operator-copy" },
		)
		again := died != nil || err != nil || step.Outcomes[operate.InMotion]+step.Outcomes[operate.Failed]+
			step.Outcomes[operate.Differs] > 0
		switch next := order; {
		case again && (tries > 0 || begun):
			w.after(5*time.Second, func() { w.backfill(order, tries-1) })
		case step.Next != "":
			next.Cursor = step.Next
			w.after(time.Second, func() { w.backfill(next, tries) })
		case begun:
			next.Cursor = ""
			w.after(5*time.Second, func() { w.backfill(next, tries) })
		default:
			w.operator--
		}
	})
}

// added returns the simulated run of a seed in which a sink is added while events arrive. The added
// sink is filled from the first sink.
func added(t testing.TB, seed uint64) *World {
	t.Helper()
	w := plain(t, seed, func(cfg *config.Config) {
		vary(seed, cfg)
		fanOut(cfg)
	})
	at := w.dice.upTo(w.options.Upstream.Calm)
	w.added = map[string]time.Duration{"vectors": at}
	order := operate.BackfillOrder{
		Collection: "content", Sink: "vectors", By: "the simulator", Limit: 1 + w.dice.IntN(5),
	}
	w.operator += 2 // so that the run does not end before the operator is done
	w.after(at+w.dice.upTo(time.Minute), func() { w.backfill(order, 20) })
	// The backfill runs once more when all messages of the first sink's queue and schedule have
	// arrived. At the first backfill, no row knew these messages.
	var last func()
	last = func() {
		if due := w.oracle.lastDue + 20*time.Minute; w.now < due {
			w.after(due-w.now, last)
			return
		}
		w.backfill(order, 50)
	}
	w.after(w.options.Upstream.Calm+5*time.Minute, last)
	return w
}

// TestASinkThatIsAddedIsFilledWhateverFails: whatever fails, an added sink keeps every promise. An
// added sink never gets an older version than the first sink has. In the end, the added sink has
// all documents of the first sink.
func TestASinkThatIsAddedIsFilledWhateverFails(t *testing.T) {
	t.Parallel()
	copied, compared := 0, 0
	for w, r := range runs(t, 300, Swarm, func(seed uint64) *World { return added(t, seed) }) {
		copied += w.coverage[step(journal.Copied)]
		for doc, first := range w.oracle.docs {
			// A redrive or a scheduled event reaches only one sink.
			if second := w.oracle.docs[doc.In("vectors")]; doc.IsDocument() && doc.Sink() == "" &&
				first.committed != "" &&
				!w.HasDied(doc) {
				if compared++; second == nil || second.committed < first.committed {
					t.Errorf("seed %d: %s is at %s in the first sink, and at %+v in the added one", r.Seed, doc,
						first.committed, second)
				}
			}
		}
	}
	if copied == 0 || compared == 0 {
		t.Errorf("%d copied, %d compared: want some of each", copied, compared)
	}
}
