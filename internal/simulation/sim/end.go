// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// checkSettled checks the simulated run when no message waits any more. Every version is committed,
// superseded or a dead letter. The sink has the committed versions. No row waits for a version that
// will never arrive.
func (w *World) checkSettled() {
	o := w.oracle
	for _, doc := range o.sorted() {
		l := o.docs[doc]
		row := w.table.row(doc)
		for _, k := range l.keys {
			if k > l.committed && !o.isDead(doc, k) && !o.lost(doc, k) {
				o.violate("every accepted version is indexed or a dead letter",
					fmt.Sprintf("%s %s; committed is %s, the row %+v", doc, k, l.committed, row))
			}
		}
		if l.shown() != l.committed && !o.isDead(doc, l.inSink) && !l.listed && !w.lostOpen(doc) &&
			!w.resyncDied(doc, l) {
			o.violate("the sink holds what is committed", fmt.Sprintf("%s: %s in the sink, %s committed", doc, l.inSink,
				l.committed))
		}
		if row.Pending > row.Committed {
			o.violate("every row settles", fmt.Sprintf("%s: %+v", doc, row))
		}
		if row.Exists() && row.ExpiresAt == 0 {
			o.violate("every row settles", fmt.Sprintf("%s never expires: %+v", doc, row))
		}
		w.checkHeld(doc, l)
		w.checkExplained(doc, l)
	}
}

// checkHeld compares the oracle's record of the sink with the sink itself.
func (w *World) checkHeld(doc shard.DocID, l *ledger) {
	stored, there, _ := w.pipeOf(doc).engine.docs.Get(background, doc) // fails only if its context ends
	want := l.inSink != "" && l.inSinkOp == shard.Put
	if there != want || there && stored.Key != l.inSink.String() {
		w.oracle.violate("the oracle and the sink agree", fmt.Sprintf("%s: the sink holds %q, the oracle recorded %s %s", doc,
			stored.Key, l.inSinkOp, l.inSink))
	}
}

// resyncDied reports whether an event that the source sent again after a disaster or a reset is a
// dead letter.
func (w *World) resyncDied(doc shard.DocID, l *ledger) bool {
	return (w.loses || l.forgot != "") && slices.ContainsFunc(l.keys, func(k shard.OrderKey) bool {
		return k > l.committed && w.oracle.isDead(doc, k)
	})
}

// lostOpen reports whether a lost flight made an outage write of the document, and its manifest
// still exists. When the manifest is old enough, prune lists the document for a resync. At the end
// of a run no such manifest remains.
func (w *World) lostOpen(doc shard.DocID) bool {
	for _, m := range w.unfinished() {
		for _, r := range m.Records {
			its := func(e flight.Entry) bool { return e.Doc == doc && e.Open() }
			if slices.ContainsFunc(r.Events, its) {
				return true
			}
		}
	}
	return false
}

func (o *oracle) lost(doc shard.DocID, k shard.OrderKey) bool {
	e := o.events[idOf(doc, k)]
	return e != nil && e.lost || o.ledger(doc).tookBack(k) || o.given(doc, k)
}

// tooOld reports whether a version is older than rows are kept. An operator then has to force its
// redrive.
func (o *oracle) tooOld(doc shard.DocID, k shard.OrderKey) bool {
	e := o.events[idOf(doc, k)]
	return e != nil && o.w.cfg.Lifecycle.Aged(epoch.Add(e.sent), epoch.Add(o.w.now))
}

// checkEnd checks the simulated run after the sink was repaired and every dead letter was redriven.
// Every document has its newest version, and no message or flight remains.
func (w *World) checkEnd() {
	o := w.oracle
	w.checkSettled()
	for _, doc := range o.sorted() {
		l := o.docs[doc]
		excused := false // a newer version is lost, or needs a forced redrive
		for _, k := range l.keys {
			switch {
			case k <= l.committed:
			case o.lost(doc, k), o.isDead(doc, k) && o.tooOld(doc, k):
				excused = true
			default:
				o.violate("the newest version is indexed",
					fmt.Sprintf("%s: %s committed, %s was sent", doc, l.committed, k))
			}
		}
		if !excused {
			w.checkContents(doc, l)
		}
	}
	for _, m := range w.unfinished() {
		if !o.notLost(m.Flight) {
			o.violate("no manifest remains", fmt.Sprintf("%s and perhaps more", m.Flight))
			break
		}
	}
	for _, q := range w.queues {
		if got := q.left + q.total(); got != q.entered {
			o.violate("messages are conserved", fmt.Sprintf("%s: %d messages entered the queue, %d are known", q.Name, q.entered, got))
		}
	}
}
