// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	changes "github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// Loss is a loss of data that only an operator can repair.
type Loss byte

// The kinds of losses. docs/runbook has a page for each kind of loss, and the simulated operator
// follows the steps of the page.
const (
	TableRestored Loss = iota + 1
	SinkRestored
	SinkEmptied
	QueuesPurged
	RowsDeleted // an operator deleted rows by hand; no page of the runbook does that
)

// Disaster is a loss with its time.
type Disaster struct {
	Loss   Loss
	Backup time.Duration // the time of the backup that is restored
	At     time.Duration // the time of the loss, before the injected failures end
	// Live leaves the functions running, against the runbook. A document may then go back until the
	// source has sent it again. The promises of reconcile itself still hold.
	Live bool

	Unnamed   bool // the operator does not change the generation, against the runbook
	Silent    bool // the source sends nothing again
	Strict    bool // no document may go back, even with Live
	Reconcile func(*reconcile.Service)
	// Heal compares and repairs instead of the use case. Heal calls done with the documents that
	// only the source has. waiting says whether something was still in motion.
	Heal func(w *World, done func(lost []shard.DocID, waiting bool))

	compared int // how often the operator compared the sink with the rows to the end
}

// stillness is how long the functions are stopped before anything is restored. The runbook says one
// minute, because a request of a stopped function may still be applied in that time.
const stillness = time.Minute

// backup is a copy of the rows and sinks that can be restored.
type backup struct {
	rows  *memory.Shards
	sinks map[*pipe]*memorysink.Sink
}

// await plans a disaster.
func (w *World) await(d *Disaster) {
	var b backup
	w.loses = true
	w.after(d.Backup, func() {
		b.rows, b.sinks = w.table.rows.Copy(), map[*pipe]*memorysink.Sink{}
		for _, p := range w.pipes {
			b.sinks[p] = p.engine.docs.Copy()
		}
	})
	w.after(d.At, func() {
		w.operator++ // so that the run does not end before the steps of the page are done
		if d.Loss == QueuesPurged {
			w.purge()
			w.publishAgain(d)
			w.operator--
			return
		}
		if !d.Unnamed {
			w.raise()
		}
		if d.Live { // invocations with the old settings have ended by then
			w.after(w.cfg.Index.Timeout+2*w.cfg.Index.Guard, func() { w.strike(d, b) })
			return
		}
		w.halt()
		w.after(stillness, func() { w.strike(d, b) })
	})
}

// halt stops the functions. Running invocations are killed, executions end at their next turn, and
// no message is received.
func (w *World) halt() {
	w.trace.mark("functions stopped", "", 0)
	w.halted, w.halts = true, w.halts+1
	for _, id := range slices.Sorted(maps.Keys(w.live)) {
		if v := w.live[id]; v != nil {
			w.kill(v, "stopped")
		}
	}
}

func (w *World) resumeAll() {
	w.trace.mark("functions started", "", 0)
	w.halted = false
	for _, p := range w.pipes {
		for _, m := range p.mappings {
			m.look()
		}
	}
}

// raise changes the text in sinks.*.generation and deploys the settings. The runbook asks for that
// before anything is restored.
func (w *World) raise() {
	w.trace.mark("generation raised", "", 0)
	w.cfg = w.deployed(func(s *sink.Settings) { s.Generation += "+" })
}

// strike restores the backup, and lets the operator compare.
func (w *World) strike(d *Disaster, b backup) {
	w.trace.mark(fmt.Sprintf("disaster %d", d.Loss), "", 0)
	w.oracle.lenient = d.Live && !d.Strict
	switch d.Loss {
	case TableRestored:
		w.table.rows, w.table.past = b.rows, map[shard.DocID][]image{}
		if w.calm {
			w.downgrade()
		}
	case RowsDeleted:
		for doc := range b.rows.All() {
			if doc.Doc.IsDocument() && w.dice.chance(0.6) {
				_, _ = w.table.rows.Write(background, shardtest.Put(shard.Row{Doc: doc.Doc}))
			}
		}
	case SinkRestored:
		for _, p := range w.pipes {
			p.engine.docs = b.sinks[p]
		}
	case SinkEmptied:
		for _, p := range w.pipes {
			p.engine.docs = p.engine.newDocs()
		}
	}
	w.oracle.recount(d.Loss == TableRestored || d.Loss == RowsDeleted)
	until := w.now
	if d.Live {
		until += 2 * time.Minute
	}
	w.reconcile(d, until, map[shard.DocID]bool{})
}

// reconcile runs the command until it has ended, no document is left for later, and the time until
// is over. The last steps of the page follow.
func (w *World) reconcile(d *Disaster, until time.Duration, resync map[shard.DocID]bool) {
	if d.Heal != nil {
		d.Heal(w, func(lost []shard.DocID, waiting bool) {
			for _, doc := range lost {
				resync[doc] = true
			}
			w.recover(d, resync, waiting)
		})
		return
	}
	var again, waiting bool
	w.invoke("reconcile", patience, func(ctx context.Context, v *invocation) {
		for _, p := range w.pipes {
			s := reconcile.Service{
				Looker: reconcile.Looker{
					Shards: w.shards(v), Reader: engineReader{v, p.engine}, SinkName: p.name, Config: w.cfg,
					Clock: v.clock, Parallel: v.parallel(),
				},
				Scanner: v.Scanner(tableClient{w.table, v}), Sink: w.sink(v, p),
				Journal: v, NewToken: w.newToken,
			}
			hooked(d.Reconcile, &s)
			for _, c := range w.collections(p) {
				for o := (reconcile.Order{Collection: c, By: "the simulator"}); ; {
					page, err := s.Compare(ctx, o)
					for _, l := range page.Lines {
						if l.Outcome == reconcile.Resync {
							resync[l.Row.Doc] = true
						}
					}
					waiting = waiting || page.Waiting > 0
					again = again || err != nil || page.Outcomes[reconcile.Later]+page.Outcomes[reconcile.Failed] > 0
					if err != nil || page.Next == nil {
						break
					}
					o.From = *page.Next
				}
			}
		}
	}, func(err error) {
		if err != nil || again || w.now < until {
			w.after(10*time.Second, func() { w.reconcile(d, until, resync) })
			return
		}
		w.recover(d, resync, waiting)
	})
}

// collections returns the collections of a sink.
func (w *World) collections(p *pipe) (list []shard.Collection) {
	names := append(slices.Collect(maps.Keys(w.cfg.Collections)), w.cfg.DefaultCollection)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if slices.Contains(w.cfg.SinksFor(name), p.name) {
			list = append(list, shard.Collection(name))
		}
	}
	return list
}

// recover runs the last steps of the page. The source sends documents again, and the operator
// compares the collection until nothing differs. A document that waited may have become a dead
// letter.
func (w *World) recover(d *Disaster, resync map[shard.DocID]bool, waiting bool) {
	if w.halted {
		w.resumeAll()
	}
	if d.Live {
		w.oracle.recount(true)
	}
	if d.Loss == TableRestored || d.Loss == RowsDeleted {
		w.publishAgain(d)
	}
	if !d.Silent {
		w.resync(resync)
	}
	if w.calm { // before that, a row of a newer build may stay untouched as long as that build runs
		d.compared++
	}
	if (waiting || len(resync) > 0) && d.compared < comparisons {
		d.Live = false
		w.after(time.Minute, func() { w.reconcile(d, w.now, map[shard.DocID]bool{}) })
		return
	}
	w.operator--
}

// comparisons limits how often the operator compares after the injected failures have ended.
const comparisons = 10

// publishAgain sends all messages again that the upstream has sent.
func (w *World) publishAgain(d *Disaster) {
	for _, a := range w.options.Upstream.Arrivals {
		if a.At <= w.now && !d.Silent {
			w.publish(a.Message)
		}
	}
}

// resync sends the committed versions of documents, and newer versions, as `lull resync` does.
func (w *World) resync(docs map[shard.DocID]bool) {
	seen, run := map[version]bool{}, string(w.newID(epoch.Add(w.now)))
	for _, a := range w.options.Upstream.Arrivals {
		if a.At > w.now {
			continue
		}
		for _, r := range w.sources.Decode(queue.Message{Body: a.Message.Body, Sent: epoch.Add(a.At)}) {
			e := r.Event
			// A document is found in one of its sinks, and is sent to all of them.
			wanted := func(row shard.DocID) bool { return docs[row] && e.Key >= w.table.row(row).Committed }
			of := version{e.Doc, e.Key} // deletes of two documents may have the same key
			if r.Invalid != nil || r.Skip != "" || seen[of] || !slices.ContainsFunc(w.cfg.RowsOf(e.Doc), wanted) ||
				e.NotBefore.After(epoch.Add(w.now)) {
				continue
			}
			seen[of] = true
			w.publish(queue.Outgoing{Body: resyncBody(e, run)})
		}
	}
}

func resyncBody(e changes.Event, run string) string {
	kind, data := "doc.deleted", ""
	if e.Op == changes.Put {
		if kind, data = "doc.changed", `,"data":`+e.Data; e.Data == "" {
			kind, data = "doc.touched", fmt.Sprintf(`,"dataref":%q`, place+e.Doc.ID())
		}
	}
	return fmt.Sprintf(`{"type":%q,"collection":%q,"subject":%q,"sequence":%q,"mode":"resync","resyncrun":%q%s}`,
		kind, e.Doc.Collection(), e.Doc.ID(), e.Version, run, data)
}

// purge deletes every message of the ingest queues, including held messages.
func (w *World) purge() {
	w.trace.mark("queues purged", "", 0)
	w.oracle.purging = true
	for _, q := range w.queues {
		if q.dead == nil {
			continue
		}
		for _, m := range slices.SortedFunc(maps.Keys(q.carried), func(a, b *message) int {
			return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Receipt, b.Receipt))
		}) {
			q.Queue.Delete(m)
		}
	}
	w.oracle.purging = false
}

// recount reads the documents in the sinks and updates the oracle's record. With forgotten, it also
// removes commits that neither the row nor the sink shows any more.
func (o *oracle) recount(forgotten bool) {
	for doc, l := range o.docs {
		kept := l.same != "" && l.same == l.committed
		s, there, _ := o.w.pipeOf(doc).engine.docs.Get(background, doc) // fails only if its context ends
		row := o.w.table.row(doc)
		l.state, _ = stateOf(s.Document) // the state in the restored sink
		switch {
		case there:
			was := l.inSink
			if l.inSink, _ = shard.ParseOrderKey(s.Key); l.inSink != was || l.inSinkOp != shard.Put {
				l.same = ""
			}
			if l.inSinkOp = shard.Put; o.shows(doc, row.Committed) {
				l.same = row.Committed
			}
		case row.CommittedOp == shard.Delete:
			l.inSink, l.inSinkOp, l.same = row.Committed, shard.Delete, ""
		default:
			l.inSink, l.inSinkOp, l.same = "", "", ""
		}
		switch {
		case !forgotten:
		case o.lenient || !there:
			l.committed = row.Committed
		case kept: // only the row had the kept version, and the sink shows an older version
			l.committed = min(l.committed, max(row.Committed, l.inSink))
		}
	}
}
