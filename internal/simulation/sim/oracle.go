// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// oracle watches a simulated run and reports broken promises. The oracle knows the true state: the
// sent events, the sink's documents, and the running invocations. It decides nothing.
type oracle struct {
	pauses map[shard.DocID]time.Duration // when each pause began, by the health row of the sink
	w      *World
	docs   map[shard.DocID]*ledger
	events map[string]*event // by the id that a dead letter of the event would have
	found  []Violation
	bytes  map[version]string // the bytes of published versions, if documents may be committed without a write

	lastDue time.Duration // when the last message that lull delayed or scheduled is due
	lenient bool          // the table was restored while the functions were running
	purging bool          // messages that leave a queue now are lost
	// redriving is set while SQS's own redrive removes messages from a dead-letter queue and sends
	// them again.
	redriving bool
}

// Violation is a broken promise with its time.
type Violation struct {
	At     time.Duration // since the simulation began
	Rule   string
	Detail string
}

func (v Violation) String() string { return fmt.Sprintf("%s at %s: %s", v.Rule, v.At, v.Detail) }

// ledger is the oracle's record of one document.
type ledger struct {
	committed shard.OrderKey // the newest version that was ever committed
	inSink    shard.OrderKey // the version in the sink, which is a put or a delete
	inSinkOp  shard.Operation
	older     bool           // a build without KEEP committed the version, so the row's content is of another version
	same      shard.OrderKey // a newer version with the same bytes, which was committed without a write
	grants    []*grant
	open      bool // an outage write changed the document, which suspends promise 1
	state     int  // the version of the object that the sink shows, if payloads are objects
	listed    bool // lull reported that the sink may have an older version
	writes    int  // number of applied writes
	commits   int
	forgot    shard.OrderKey   // the committed version before the last reset
	took      []shard.OrderKey // all withdrawn versions: none may be admitted, claimed or committed again
	resetAt   time.Duration
	keys      []shard.OrderKey
}

// grant is a claim that the table granted.
type grant struct {
	v        *invocation
	token    shard.Token
	key      shard.OrderKey
	at       shard.Micros // the fence, once a request was sent under the claim
	until    shard.Micros
	inFlight int // requests under the claim that the sink may still apply
	ended    bool
	copy     bool // a copy of the committed version, to find out whether the document causes a refusal
	open     bool // an outage write without a claim (`tableOutage: open`)
}

// alive reports whether the owner of the claim may still send a request.
func (g *grant) alive() bool { return !g.ended && !g.v.over && !g.v.Killed() }

func newOracle(w *World) *oracle {
	return &oracle{
		w: w, docs: map[shard.DocID]*ledger{}, bytes: map[version]string{}, events: map[string]*event{},
		pauses: map[shard.DocID]time.Duration{},
	}
}

// most is how many violations of one run are recorded. Usually only the first one matters.
const most = 10

func (o *oracle) violate(rule, detail string) {
	if !o.lenient {
		o.always(rule, detail)
	}
}

// always records a violation that no action of an operator excuses.
func (o *oracle) always(rule, detail string) {
	o.w.trace.tell("VIOLATION %s: %s", rule, detail)
	if len(o.found) < most {
		o.found = append(o.found, Violation{o.w.now, rule, detail})
	}
}

// ledger returns the record of a document. For an empty id the record is not stored.
func (o *oracle) ledger(doc shard.DocID) *ledger {
	l := o.docs[doc]
	if l == nil {
		if l = (&ledger{}); doc != "" {
			o.docs[doc] = l
		}
	}
	return l
}

// wrote checks every row write that the table applied.
func (o *oracle) wrote(v *invocation, w shard.Write, old, row shard.Row) {
	l := o.ledger(w.Doc)
	o.marks(old, row)
	if w.Drop {
		return
	}
	if old.Foreign() {
		o.violate("a row with a newer schema is not changed", fmt.Sprintf("%s: %s", w.Doc, w.Transition))
	}
	if row.Committed < old.Committed && w.Transition != shard.RESET {
		o.violate("committed is monotone", fmt.Sprintf("%s: %s took committed from %s to %s", w.Doc, w.Transition,
			old.Committed, row.Committed))
	}
	o.w.worst.Refusals = max(o.w.worst.Refusals, int(row.Refusals))
	for _, k := range []shard.OrderKey{row.Pending, row.Claimed, row.Committed} {
		if w.Transition != shard.RESET && l.tookBack(k) {
			o.violate("a withdrawn version stays withdrawn", fmt.Sprintf("%s: %s of %s, which an operator withdrew", w.Doc, w.Transition, k))
		}
	}
	switch w.Transition.Base() {
	case shard.CLAIM:
		o.claimed(v, row.Doc)
		o.granted(v, l, row, row.Claimed)
	case shard.REASSERT:
		o.granted(v, l, row, row.Committed)
	case shard.REASSERTED:
		o.ended(v, l, old, 0)
	case shard.COMMIT:
		o.committed(w, l, old, row)
		o.ended(v, l, old, 0)
	case shard.KEEP:
		o.kept(w.Doc, l, row)
	case shard.RELEASE, shard.REJECT:
		o.ended(v, l, old, row.LeaseUntil)
	case shard.RAISE:
		o.raised(l, row)
	case shard.RESET:
		o.resets(l, old, row)
	}
}

// granted checks that no other invocation may write under an older claim.
func (o *oracle) granted(v *invocation, l *ledger, row shard.Row, key shard.OrderKey) {
	g := &grant{v: v, token: row.Owner, key: key, until: row.LeaseUntil}
	for _, other := range l.grants {
		switch {
		case o.w.beyondGuard:
		case other.alive():
			o.violate("one writer inside a lease", fmt.Sprintf(
				"%s: claim of %s by %s %d while %s %d holds one of %s until %s",
				row.Doc, g.key, v.Name, v.ID, other.v.Name, other.v.ID, other.key, o.w.trace.micros(other.until)))
		case other.inFlight > 0 && !o.w.pipeOf(row.Doc).versions:
			o.violate("one writer inside a lease", fmt.Sprintf(
				"%s: claim of %s while the sink may still apply a request for %s", row.Doc, g.key, other.key))
		}
	}
	l.grants = slices.DeleteFunc(l.grants, func(g *grant) bool { return !g.alive() && g.inFlight == 0 && g.v.over })
	l.grants = append(l.grants, g)
}

// committed checks that the committed version is in the sink.
func (o *oracle) committed(w shard.Write, l *ledger, old, row shard.Row) {
	k := row.Committed
	if k < l.committed {
		o.violate("no old version becomes new", fmt.Sprintf("%s: %s was committed after %s", w.Doc, k, l.committed))
	}
	if l.inSink < k {
		o.loaded(l, k)
	}
	if l.shown() < k && !l.open && o.w.options.Monitor == nil { // a monitor may make the sink give wrong answers
		o.violate("what is committed is in the sink", fmt.Sprintf("%s: %s was committed, the sink holds %s", w.Doc, k,
			l.inSink))
	}
	if interval := o.w.timing(w.Doc).MinInterval; old.LastWrite != 0 && row.LastWrite.Sub(old.LastWrite) < interval {
		o.violate("min interval", fmt.Sprintf("%s: two committed writes within %s", w.Doc,
			row.LastWrite.Sub(old.LastWrite)))
	}
	l.older = !slices.ContainsFunc(w.Update, func(a shard.Action) bool { return a.Attr == shard.AttrContent })
	l.committed = max(l.committed, k)
	l.commits++
	o.fresh(w.Doc, k)
}

// ended ends a claim that is released. The ended claim is the newest claim of this invocation, with
// the write's time if the write has one. ended never ends a claim of another invocation.
func (o *oracle) ended(v *invocation, l *ledger, old shard.Row, at shard.Micros) {
	for i := len(l.grants) - 1; i >= 0; i-- {
		if g := l.grants[i]; g.v == v && !g.ended && (at == 0 || g.at == 0 || g.at == at) {
			g.ended = true
			break
		}
	}
	for _, g := range l.grants {
		if g.v != v && g.token == old.Owner && !g.ended && o.w.now < g.until.Time().Sub(epoch) {
			o.violate("one writer inside a lease", fmt.Sprintf(
				"%s: %s %d ends the lease of %s %d, which lasts until %s",
				old.Doc, v.Name, v.ID, g.v.Name, g.v.ID, o.w.trace.micros(g.until)))
		}
	}
}

// counted checks the number of documents that a turn is about to send. A sink with a ceiling must
// never get more documents than the ceiling allows.
func (o *oracle) counted(v *invocation, documents int) {
	w, p := o.w, v.pipe
	if p == nil || config.Ceiling(w.cfg.Sinks[p.name]) == 0 {
		return
	}
	ceiling := config.Ceiling(w.cfg.Sinks[p.name])
	p.filled = max(p.filled, w.now) + shard.Cost(float64(documents), ceiling)
	burst := max(shard.SendBurst, shard.Cost(1, ceiling)) + sendsLate + 2*w.drawn.Skew
	if ahead := p.filled - w.now; ahead > burst && w.rates.WrongClock == 0 {
		o.violate("no more documents than the ceiling", fmt.Sprintf(
			"%s %d sends %d to %s: the sent documents fill the next %s", v.Name, v.ID, documents, p.name, ahead))
	}
}

// sendsLate is the longest time between counting a request and sending it.
const sendsLate = 500 * time.Millisecond

// sent records a request to the sink, and returns the claims under which it is made.
func (o *oracle) sent(v *invocation, ops []sink.Op) []*grant {
	under := make([]*grant, len(ops))
	for i, op := range ops {
		// index may write a copy of a document again, to find out what causes a refusal. The copy
		// may be of the version that index has claimed, if a request without an answer wrote that
		// version before. The copy has an older fence.
		under[i] = &grant{v: v, key: op.Key, open: v.open}
		if o.copied(v, op, under[i]) {
			under[i].inFlight++
			continue
		}
		if g := o.ledger(op.Doc).newest(v, op.Key); g != nil {
			under[i] = g
		} else if !v.open {
			o.violate("no write without a claim", fmt.Sprintf("%s: %s %d writes %s", op.Doc, v.Name, v.ID, op.Key))
		}
		under[i].at = max(under[i].at, shard.Micros(op.Fence))
		under[i].inFlight++
	}
	return under
}

// newest returns the last claim of a version that an invocation got, or nil.
func (l *ledger) newest(v *invocation, key shard.OrderKey) *grant {
	for _, g := range slices.Backward(l.grants) {
		if g.v == v && g.key == key && !g.copy {
			return g
		}
	}
	return nil
}

// copied recognises the copy of a document by the fence that the invocation has read. If the sink
// has no versions, the copy is sent under the lease of another version of the document. No
// invocation may write that version while the copy is on its way.
func (o *oracle) copied(v *invocation, op sink.Op, g *grant) bool {
	l, n := o.ledger(op.Doc), len(o.ledger(op.Doc).grants)
	leased := n > 0 && l.grants[n-1].v == v && l.grants[n-1].alive() &&
		op.Key == l.inSink
	versions := o.w.pipeOf(op.Doc).versions
	fence, read := v.copies[op.Doc]
	if versions {
		fence-- // the sink checks the copy, and writes nothing
	}
	if !read || fence != op.Fence || !leased && !versions {
		return false
	}
	if g.ended, g.copy = true, true; leased {
		l.grants = slices.Insert(l.grants, n-1, g)
	}
	return true
}

// landed records that a request has ended: nothing of it will be applied.
func (o *oracle) landed(under []*grant) {
	for _, g := range under {
		g.inFlight--
	}
}

// answered records the sink's outcome for an item.
func (o *oracle) answered(op sink.Op, g *grant, out sink.Outcome) {
	o.w.trace.item(op, out)
	l := o.ledger(op.Doc)
	switch out.Kind {
	case sink.Newer:
		if n := len(l.grants); n > 0 && g == l.grants[n-1] && g.alive() && !o.w.beyondGuard && !l.open {
			o.violate("no 409 under a live lease", fmt.Sprintf("%s: %s", op.Doc, op.Key))
		}
	case sink.Applied:
		l.open = l.open || g.open // the setting suspends promise 1
		if op.Key < l.shown() && op.Key != l.inSink && !l.tookBack(l.inSink) && !o.isDead(op.Doc, l.inSink) &&
			!o.given(op.Doc, l.inSink) && !l.open {
			o.violate("the sink never goes back", fmt.Sprintf("%s: from %s (%s) to %s (%s)", op.Doc, l.inSink,
				l.inSinkOp, op.Key, op.Kind))
		}
		if op.Key != l.inSink {
			l.same = ""
		}
		if l.inSink, l.inSinkOp = op.Key, op.Kind; op.Key < l.committed && o.shows(op.Doc, l.committed) {
			l.same = l.committed // while an operator restores
		}
		o.contents(op, l)
		o.enriched(op)
		if !g.copy {
			l.writes++
		}
	}
}

// waits records that a message may stay invisible for the time d. The run cannot settle earlier.
func (o *oracle) waits(d time.Duration) { o.lastDue = max(o.lastDue, o.w.now+d) }

// keptAway records that receive may leave messages invisible in the queue, for the time most at the
// longest. After the injected failures have ended, receive has no reason to do so.
func (w *World) keptAway(v *invocation, most time.Duration) {
	if v.began < w.options.Upstream.Calm {
		w.oracle.waits(most)
	}
}

// noted handles a note of a use case.
func (w *World) noted(v *invocation, n journal.Note) {
	w.coverage[step(n.Step)]++
	if w.options.Monitor != nil {
		w.options.Monitor.Note(v.ID, n)
		return
	}

	switch n.Step {
	case journal.Drift:
		w.oracle.drifted(n)
	case journal.Unreachable:
		w.counts.Unreachable++
		w.keptAway(v, config.TableHold)
	case journal.LaunchLost:
		w.keptAway(v, config.TableHold)
	case journal.Away, journal.Requeued:
		w.keptAway(v, config.AwayMost)
	case journal.OutageResync:
		w.oracle.ledger(n.Doc).listed = true
	case journal.DeadLettered:
		w.oracle.checkDeadLetter(n)
	case journal.Stuck:
		// Only notes about flights have a count. For a row, the alarm is right after an outage that
		// was longer than SQS keeps messages.
		expired := n.Count == 0 && w.oracle.expired(n.Doc, n.Key)
		if !expired && (n.Count == 0 || !w.oracle.notLost(flight.ID(n.Flight))) {
			w.oracle.violate("nothing is stuck", fmt.Sprintf("%s: %s %s %s", v.Name, n.Doc, n.Flight, n.Detail))
		}
	}
	if w.options.Journal != nil {
		w.options.Journal.Note(n)
	}
}

// drifted checks that drift is reported only if data was lost. The sink may also differ after an
// outage write, or if a write without an answer became a dead letter.
func (o *oracle) drifted(n journal.Note) {
	l := o.ledger(n.Doc)
	blocked := o.isDead(n.Doc, l.inSink) || o.isDead(n.Doc, o.w.table.row(n.Doc).Claimed) || o.given(n.Doc, l.inSink)
	if !o.w.loses && !l.open && !blocked {
		o.violate("no drift if nothing was lost", fmt.Sprintf("%s: %s", n.Doc, n.Detail))
	}
}
