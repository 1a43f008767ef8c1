// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	lines "github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/shard"
)

// Result is the result of a run.
type Result struct {
	Seed       uint64
	Violations []Violation
	Hash       uint64        // the hash of the whole trace
	Decisions  int           // number of I/O decisions
	Virtual    time.Duration // virtual time that passed in the run
	Settled    time.Duration // from the end of the injected failures until no message waited
	Freshness  []time.Duration
	Counts     Counts // counts until everything had settled
	Rates      Rates
	Extremes   Extremes         // extremes until everything had settled
	Letters    []lines.DeadLine // parked dead letters when everything had settled, before the redrive
	Timeline   []Second         // the timeline until everything had settled, if the options ask for it
	Stopped    bool             // GoOn stopped the run, so all other values are of an unfinished run
	// Writes and Reads are the table's provisioned capacity when everything had settled. Writes and
	// Reads are nil if the table is billed on demand, or if the run was too short to limit the
	// capacity.
	Writes, Reads *Capacity
}

// Limits of a run, in virtual time.
const (
	lookEvery    = time.Second
	landing      = time.Minute // after everything has settled: time for requests without a waiting caller
	settleWithin = 12 * time.Minute
	redriveTries = 8
)

// Simulate runs a simulation to its end. If the context ends earlier, Simulate stops and returns
// the context's error.
func Simulate(ctx context.Context, o Options) (Result, error) {
	goesOn := o.GoOn
	o.GoOn = func(now time.Duration) bool { return ctx.Err() == nil && (goesOn == nil || goesOn(now)) }
	w, err := New(o)
	if err != nil {
		return Result{}, err
	}
	r := w.Run()
	if r.Stopped {
		err = ctx.Err()
	}
	return r, err
}

// Run runs the simulation to its end, in four parts. The first part has the upstream and the
// injected failures. The second part is the time until everything has settled. In the third part,
// the sink accepts what it refused, and an operator redrives every dead letter. Last, prune cleans
// up. Run may be called once.
func (w *World) Run() Result {
	defer w.close()
	w.begin()
	w.after(w.options.Upstream.Calm, w.quieten)
	r := Result{Seed: w.options.Seed}
	for !w.calm && w.step() {
	}
	since := w.now
	settled := w.settle(settleWithin)
	r.Counts = w.counts.clone()
	r.Writes, r.Reads = w.table.writes.result(), w.table.reads.result()
	r.Extremes, r.Timeline, r.Letters = w.worst, w.timeline.sorted(), w.lying()
	if settled {
		r.Settled = w.now - since - landing
		w.oracle.lenient = false
		if w.idle() {
			w.checkSettled()
		}
		w.lastOrders()
	}
	r.Violations, r.Hash, r.Decisions, r.Virtual = w.oracle.found, w.trace.hash.Sum64(), w.decisions, w.now
	r.Freshness, r.Rates, r.Stopped = w.freshness, w.drawn, w.stopped
	return r
}

// begin starts the recurring work. Prune runs at once, as after a deployment, and then at its
// interval.
func (w *World) begin() {
	for _, p := range w.pipes {
		w.prune(p)
	}
	w.after(w.cfg.Lifecycle.PruneEvery+w.dice.upTo(w.cfg.Lifecycle.PruneEvery), w.pruning)
	w.after(ttlEvery, w.table.expire)
}

// step runs the next occasion. step reports whether there was an occasion and no promise is broken.
func (w *World) step() bool {
	at, o, ok := w.agenda.Next()
	if !ok || len(w.oracle.found) > 0 || w.stopped {
		return false
	}
	w.now = at
	switch {
	case o.co == nil:
		o.do()
	case o.co.park == o.park:
		owner := o.co.owner
		w.resume(o.co)
		w.reap(owner)
	}
	return true
}

// quieten ends the injected failures. Clocks are right from this moment, and the sink accepts
// versions that would otherwise wait for their dead deadline.
func (w *World) quieten() {
	w.calm = true
	w.outages, w.settings = nil, nil
	w.rates = quietRates()
	for _, q := range w.queues {
		q.limit()
	}
	w.heal(false)
	w.trace.mark("calm", "", 0)
}

// pruning runs prune at its interval, as the EventBridge rule does.
func (w *World) pruning() {
	for _, p := range w.pipes {
		w.prune(p)
	}
	w.after(w.cfg.Lifecycle.PruneEvery, w.pruning)
}

// settle runs until no message waits, no flight holds messages and no function runs. settle then
// continues until all requests have landed.
func (w *World) settle(within time.Duration) bool {
	// A message that is lost once waits for two windows, and its successor for one.
	within += 3 * max(0, w.hold()-time.Minute)
	limit := w.now + within
	for !w.idle() {
		if !w.run(lookEvery) {
			return false
		}
		limit = max(limit, w.oracle.lastDue+within)
		if w.now > limit && w.blocked() {
			w.counts.Blocked++
			return true
		}
		if w.now > limit {
			w.oracle.violate("everything settles", fmt.Sprintf("after %s there remain: %s", within, w.rest()))
			return false
		}
	}
	return w.run(landing) && len(w.oracle.found) == 0
}

// blocked reports whether all waiting versions are kept out by a newer version. The newer version
// may be in the sink and is now a dead letter, which must be redriven first (alarm
// BlockedByUnknown). The protocol leaves this case to an operator.
func (w *World) blocked() bool {
	for _, q := range w.queues {
		for _, events := range q.carried {
			waits := func(e truth) bool { return !w.oracle.done(e.event) && !w.blocks(e.event) }
			if q.dead == nil || slices.ContainsFunc(events, waits) {
				return false
			}
		}
	}
	return w.schedule.Len() == 0
}

// blocks reports whether an event is a dead letter, or is kept out by a dead letter.
func (w *World) blocks(e *event) bool {
	if e.parked || e.key == "" {
		return e.parked
	}
	claimed := w.table.row(e.doc).Claimed
	return claimed > e.key && w.oracle.isDead(e.doc, claimed)
}

// run simulates for a duration. run returns false if a promise was broken.
func (w *World) run(d time.Duration) bool {
	end := w.now + d
	w.after(d, func() {}) // so that there is an occasion at the end
	for w.now < end {
		if !w.step() {
			return false
		}
	}
	return true
}

func (w *World) idle() bool {
	for _, p := range w.pipes {
		working := func(m *mapping) bool { return !m.idle() }
		if p.machine.running > 0 || slices.ContainsFunc(p.mappings, working) {
			return false
		}
	}
	for _, q := range w.queues {
		if q.total() > 0 {
			return false
		}
	}
	return len(w.live) == 0 && w.schedule.Len() == 0 && w.operator == 0
}

// rest describes what still waits or runs.
func (w *World) rest() string {
	s := fmt.Sprintf("%d invocations, %d scheduled", len(w.live), w.schedule.Len())
	for _, p := range w.pipes {
		s += fmt.Sprintf("; %s: %d executions", p.name, p.machine.running)
	}
	for _, q := range w.queues {
		s += fmt.Sprintf("; %s: %d messages", q.Name, q.total())
		for m, events := range q.carried {
			for _, e := range events {
				s += fmt.Sprintf("; %s %s %s, row %+v", m.ID, e.doc, e.key, w.table.row(e.doc))
			}
			break // one message is enough
		}
	}
	return s
}

// lastOrders repairs the sink, redrives the dead letters, and lets prune clean up.
func (w *World) lastOrders() {
	w.heal(true)
	for try := 0; w.parked() > 0; try++ {
		if try == redriveTries {
			w.oracle.violate("every dead letter can be redriven", fmt.Sprintf("%d remain after %d tries", w.parked(), try))
			return
		}
		w.redrive()
		w.run(lookEvery)
		if !w.settle(settleWithin) {
			return
		}
	}
	w.run(w.hold() + 10*time.Minute + 2*w.cfg.Queues.Visibility +
		2*w.cfg.Lifecycle.PruneEvery)
	// One run of prune checks about a hundred flights. In a run of days, more flights may be lost.
	for before, n := 0, len(w.unfinished()); n > 0 && n != before; before, n = n, len(w.unfinished()) {
		w.run(3 * w.cfg.Lifecycle.PruneEvery)
	}
	// Some versions wait behind a dead letter that is too old for a redrive. An operator must force
	// the redrive.
	if w.settle(settleWithin) && w.idle() {
		w.checkEnd()
	}
}

// lying returns the parked dead letters, without dead letters of superseded versions.
func (w *World) lying() []lines.DeadLine {
	all := []lines.DeadLine{}
	for _, f := range w.letters.facts() {
		if f.Key == "" || w.oracle.ledger(f.Doc).committed < f.Key {
			all = append(all, lines.DeadLine{
				Key: string(f.Doc), Reason: string(f.Reason), Detail: f.Detail, MessageID: f.MessageID,
				Where: w.places.Of(f),
			})
		}
	}
	return all
}

// parked returns how many dead letters with an order key are not superseded yet.
func (w *World) parked() (n int) {
	for _, f := range w.letters.facts() {
		l := w.oracle.ledger(f.Doc)
		if f.Key != "" && f.ID == idOf(f.Doc, f.Key) && l.committed < f.Key && !l.tookBack(f.Key) &&
			!w.oracle.tooOld(f.Doc, f.Key) {
			n++
		}
	}
	return n
}

// close ends everything that is still running.
func (w *World) close() {
	w.ended = true
	for _, id := range slices.Sorted(maps.Keys(w.live)) {
		if v := w.live[id]; v != nil {
			w.kill(v, "end")
		}
	}
	w.scheduler.close()
}

// sorted returns the documents that the oracle knows, sorted.
func (o *oracle) sorted() []shard.DocID { return slices.Sorted(maps.Keys(o.docs)) }
