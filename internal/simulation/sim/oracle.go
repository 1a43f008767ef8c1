package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// oracle watches the world and reports broken promises. It knows the truth: the sent events, the
// sink's documents, and which invocations are alive. It decides nothing.
type oracle struct {
	pauses map[shard.DocID]time.Duration // since when a sink is paused, by its health row
	w      *World
	docs   map[shard.DocID]*ledger
	events map[string]*event // by the id that a dead letter of it would have
	found  []Violation
	bytes  map[version]string // the bytes of published versions, if documents may be committed without a write

	lastDue time.Duration // when the last message that lull delayed or scheduled is due
	lenient bool          // the table was restored while the functions ran
	purging bool          // what leaves a queue is lost
	// redriving is set while SQS removes messages from a dead-letter queue that its own redrive has
	// sent back.
	redriving bool
}

// Violation is a broken promise.
type Violation struct {
	At     time.Duration // since the simulation began
	Rule   string
	Detail string
}

func (v Violation) String() string { return fmt.Sprintf("%s at %s: %s", v.Rule, v.At, v.Detail) }

// ledger is the truth about one document.
type ledger struct {
	committed shard.OrderKey // the newest ever
	inSink    shard.OrderKey // the version that the sink holds, as a put or as a delete
	inSinkOp  shard.Operation
	older     bool           // a build without KEEP committed it: the row's content is of another version
	same      shard.OrderKey // a newer version with its bytes, which was committed without a write
	grants    []*grant
	open      bool // written without its row, in a table outage, which suspends promise 1
	state     int  // the version of its object that the sink shows, where payloads are objects
	listed    bool // ... and lull said that the sink may hold an older version
	writes    int  // applied
	commits   int
	forgot    shard.OrderKey   // what was committed before the last reset
	took      []shard.OrderKey // all of them: none may be admitted, claimed or committed again
	resetAt   time.Duration
	keys      []shard.OrderKey
}

// grant is a claim that the table granted.
type grant struct {
	v        *invocation
	token    shard.Token
	key      shard.OrderKey
	at       shard.Micros // the fence, once a request was sent under it
	until    shard.Micros
	inFlight int // requests of its that the sink may still apply
	ended    bool
	copy     bool // of the committed version, to find out whether a refusal is the document's fault
	open     bool // there was none: written in a table outage (`tableOutage: open`)
}

// alive reports whether the claim's owner may still send a request under it.
func (g *grant) alive() bool { return !g.ended && !g.v.over && !g.v.Killed() }

func newOracle(w *World) *oracle {
	return &oracle{
		w: w, docs: map[shard.DocID]*ledger{}, bytes: map[version]string{}, events: map[string]*event{},
		pauses: map[shard.DocID]time.Duration{},
	}
}

// most is how many violations of one run are kept: the first is the one that matters.
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

// ledger is the account of a document; for an empty id it is not kept.
func (o *oracle) ledger(doc shard.DocID) *ledger {
	l := o.docs[doc]
	if l == nil {
		if l = (&ledger{}); doc != "" {
			o.docs[doc] = l
		}
	}
	return l
}

// wrote sees every write that the table allowed.
func (o *oracle) wrote(v *invocation, w shard.Write, old, row shard.Row) {
	l := o.ledger(w.Doc)
	if w.Drop {
		return
	}
	if old.Foreign() {
		o.violate("a row of a newer schema is left alone", fmt.Sprintf("%s: %s", w.Doc, w.Transition))
	}
	if row.Committed < old.Committed && w.Transition != shard.RESET {
		o.violate("committed is monotone", fmt.Sprintf("%s: %s took committed from %s to %s", w.Doc, w.Transition,
			old.Committed, row.Committed))
	}
	o.w.worst.Refusals = max(o.w.worst.Refusals, int(row.Refusals))
	for _, k := range []shard.OrderKey{row.Pending, row.Claimed, row.Committed} {
		if w.Transition != shard.RESET && l.tookBack(k) {
			o.violate("a reset stays a reset", fmt.Sprintf("%s: %s of %s, which an operator took back", w.Doc, w.Transition, k))
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

// granted checks that a new claim meets no other writer.
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
	if l.shown() < k && !l.open && o.w.options.Monitor == nil { // a monitor makes sinks lie
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

// ended ends a claim that is given back: the newest claim of this invocation, and of this time if
// the write names one. It never ends another invocation's claim.
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

// counted sees how many documents a turn is about to send, and whether a sink with a ceiling gets
// more than that in any time.
func (o *oracle) counted(v *invocation, documents int) {
	w, p := o.w, v.pipe
	if p == nil || w.cfg.Ceiling(p.name) == 0 {
		return
	}
	ceiling := w.cfg.Ceiling(p.name)
	p.filled = max(p.filled, w.now) + shard.Cost(float64(documents), ceiling)
	burst := max(shard.SendBurst, shard.Cost(1, ceiling)) + sendsLate + 2*w.drawn.Skew
	if ahead := p.filled - w.now; ahead > burst && w.rates.WrongClock == 0 {
		o.violate("no more documents than the ceiling", fmt.Sprintf(
			"%s %d sends %d to %s: what it got fills the next %s", v.Name, v.ID, documents, p.name, ahead))
	}
}

// sendsLate is how much later than it was counted a request may go.
const sendsLate = 500 * time.Millisecond

// sent sees a request on its way to the sink, and finds the claims that it is made under.
func (o *oracle) sent(v *invocation, ops []sink.Op) []*grant {
	under := make([]*grant, len(ops))
	for i, op := range ops {
		// A copy that index writes again to ask whose fault a refusal is may be of the very version that
		// it claimed: then a request whose answer was lost brought it there. Its fence is older.
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

// newest is the claim that an invocation got last of a version, nil for none.
func (l *ledger) newest(v *invocation, key shard.OrderKey) *grant {
	for _, g := range slices.Backward(l.grants) {
		if g.v == v && g.key == key && !g.copy {
			return g
		}
	}
	return nil
}

// copied sees the copy of a document, by the fence that this invocation has read. In a sink without
// versions, the copy is sent under the lease of another version of the document. No invocation may
// write that version while the copy is on its way.
func (o *oracle) copied(v *invocation, op sink.Op, g *grant) bool {
	l, n := o.ledger(op.Doc), len(o.ledger(op.Doc).grants)
	leased := n > 0 && l.grants[n-1].v == v && l.grants[n-1].alive() &&
		op.Key == l.inSink
	versions := o.w.pipeOf(op.Doc).versions
	fence, read := v.copies[op.Doc]
	if versions {
		fence-- // the sink looks at it, and takes nothing
	}
	if !read || fence != op.Fence || !leased && !versions {
		return false
	}
	if g.ended, g.copy = true, true; leased {
		l.grants = slices.Insert(l.grants, n-1, g)
	}
	return true
}

// landed sees a request whose fate is known: nothing of it is applied from now on.
func (o *oracle) landed(under []*grant) {
	for _, g := range under {
		g.inFlight--
	}
}

// answered records the sink's outcome of an item.
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
		if op.Key < l.shown() && op.Key != l.inSink && !l.tookBack(l.inSink) && !o.isDead(op.Doc, l.inSink) && !l.open {
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

// waits records that a message may stay invisible for the time d: the world cannot settle before.
func (o *oracle) waits(d time.Duration) { o.lastDue = max(o.lastDue, o.w.now+d) }

// keptAway records that receive holds messages back for at most this time. It has no reason to
// after the injected failures have ended.
func (w *World) keptAway(v *invocation, most time.Duration) {
	if v.began < w.options.Upstream.Calm {
		w.oracle.waits(most)
	}
}

// noted gets the notes of the use cases.
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
		w.oracle.violate("nothing is stuck", fmt.Sprintf("%s: %s %s %s", v.Name, n.Doc, n.Flight, n.Detail))
	}
	if w.options.Journal != nil {
		w.options.Journal.Note(n)
	}
}

// drifted checks that drift is reported only if something was lost. The sink may differ after an
// outage write. It may also differ if a write without an answer became a dead letter.
func (o *oracle) drifted(n journal.Note) {
	l := o.ledger(n.Doc)
	blocked := o.isDead(n.Doc, l.inSink) || o.isDead(n.Doc, o.w.table.row(n.Doc).Claimed)
	if !o.w.loses && !l.open && !blocked {
		o.violate("no drift where nothing was lost", fmt.Sprintf("%s: %s", n.Doc, n.Detail))
	}
}
