package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// This file puts other builds of lull beside this one, as in a deploy and in one that is rolled
// back. An older one leaves out of a state what it does not know. A newer one leaves manifests,
// states and rows whose schema this one does not know.

// byOlder is a state as an older build hands it on: without the fields that were added later.
func byOlder(s flight.State) flight.State {
	s.Kind, s.Panicked, s.Sample = "", flight.Remaining{}, nil
	s.Slot, s.SlotEnd, s.Probes = 0, 0, 0
	return s
}

// handed is the state as this turn gets it.
func (w *World) handed(s flight.State) flight.State {
	if w.strikes("state of an older build", w.rates.Older) {
		s = byOlder(s)
	}
	if w.strikes("state of a newer build", w.rates.Newer) {
		s.Schema = flight.SchemaVersion + 1
	}
	return s
}

// upgrade has a newer build write some of the rows that are there, until it is put back and the
// injected failures end.
func (w *World) upgrade() {
	for _, doc := range w.oracle.sorted() {
		if row := w.table.row(doc); row.Exists() && w.dice.chance(0.5) {
			w.setSchema(doc, shard.SchemaVersion+1)
			w.coverage[point{aFailure, "row of a newer build", ""}]++
		}
	}
}

// downgrade gives the rows back.
func (w *World) downgrade() {
	for _, doc := range w.oracle.sorted() {
		if w.table.row(doc).Foreign() {
			w.setSchema(doc, shard.SchemaVersion)
		}
	}
}

func (w *World) setSchema(doc shard.DocID, to int64) {
	w.trace.mark(fmt.Sprintf("schema %d of %s", to, doc), "", 0)
	_, _ = w.table.rows.Write(background, shard.Write{Doc: doc, Update: []shard.Action{ // nothing refuses it
		{Verb: shard.Set, Attr: shard.AttrSchema, Val: shard.Value{Num: to}},
	}})
}

// redriveByQueue is SQS's own redrive of a dead-letter queue, StartMessageMoveTask: what is visible
// there becomes new messages of an ingest queue, whatever lull thinks of them.
func (w *World) redriveByQueue(p *pipe) {
	q := p.dead
	for range q.Counts().Visible {
		m := q.Front(w.now)
		if m == nil {
			return
		}
		w.coverage[point{aFailure, "dead letter moved by SQS's own redrive", ""}]++
		q.Take(w.now, m)
		to := p.live
		if m.MovedFrom == p.bulk.Name {
			to = p.bulk
		}
		msg, err := to.New(w.now, &queue.Outgoing{Body: m.Body, Attributes: m.Attributes})
		if err != nil {
			w.oracle.violate("a dead letter can be moved", err.Error())
			return
		}
		to.enter(msg, 0)
		w.oracle.redriving = true
		q.Queue.Delete(m)
		w.oracle.redriving = false
	}
}

// keep stores the manifest, which a newer build may have written, or somebody may delete: a rule of
// the bucket that is too eager, or a hand.
func (f flights) keep(m *flight.Manifest) {
	w := f.w
	open := slices.ContainsFunc(m.Records, func(r flight.Record) bool {
		return slices.ContainsFunc(r.Events, flight.Entry.Open)
	})
	if open {
		return // what it wrote nobody could list for a resync
	}
	if w.strikes("manifest of a newer build", w.rates.Newer) {
		w.foreign[m.Flight] = true
	}
	if w.strikes("manifest gone", w.rates.ManifestGone) {
		w.after(w.dice.upTo(time.Minute), func() {
			_ = f.Flights.Delete(background, m.Flight) // fails only with its context
		})
	}
}

// unfinished lists the manifests that this build may read.
func (w *World) unfinished() (list []*flight.Manifest) {
	stored, _, _ := w.flights.List(background, "", math.MaxInt32) // fails only with its context
	for _, s := range stored {
		if m, err := w.flights.Flights.Get(background, s.ID); err == nil && !w.foreign[s.ID] {
			list = append(list, m)
		}
	}
	return list
}
