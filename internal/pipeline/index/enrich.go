package index

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Documents of some collections are enriched between their claim and their write: a service adds
// fields to them (docs/enrich.md). The sink has not been asked for anything by then. So every
// failure ends in RELEASE or REJECT, and no outcome is ever unknown.

// enrichFailed starts the last error of a row if a service failed on its document. The document
// is then suspected: if the service fails on it alone again, that says nothing about the
// service.
const enrichFailed = "enrich failed: "

// shortestAsk is the least time for which a request to a service is worth starting.
const shortestAsk = 20 * time.Millisecond

// enricher is what a turn knows of the service of one collection.
type enricher struct {
	service
	collection shard.Collection
	set        *config.Enrich
	caller     enrich.Caller
	inputs     enrich.Inputs

	read    bool         // its health row was read
	probing shard.Micros // until when this turn is the one prober; 0 if it is not
	rounds  int
}

// enricherOf returns the service for a document, nil if it needs none.
func (t *turn) enricherOf(d *document) *enricher {
	c := d.id.Collection()
	set := t.config.EnrichFor(c)
	if set == nil || d.fault != "" || d.newest().Op == shard.Delete {
		return nil
	}
	e := t.enrichers[c]
	if e == nil {
		inputs, _ := enrich.ParseInputs(set.Inputs) // Validate has checked the pointers
		e = &enricher{
			service:    service{invocation: t.invocation, kind: "enricher", name: enrich.HealthName(c)},
			collection: c, set: set, caller: t.h.Enrichers[c], inputs: inputs,
		}
		t.enrichers[c] = e
	}
	return e
}

// enrichable returns the documents that may be claimed now: no more than can be enriched and
// written in this invocation, and of at most one collection with a service. If that service is
// away or busy, the documents wait unclaimed. later is for the next round.
func (t *turn) enrichable(ctx context.Context, docs []*document) (ready, later []*document) {
	var first *enricher
	var waiting []*document
	for _, d := range docs {
		switch e := t.enricherOf(d); {
		case e == nil:
			ready = append(ready, d)
		case first == nil || e == first:
			first = e
			waiting = append(waiting, d)
		default:
			later = append(later, d)
		}
	}
	if first == nil {
		return ready, later
	}
	n, until, why := t.enrichRoom(ctx, first, len(waiting))
	if n == 0 {
		for _, d := range waiting {
			d.away = t.isAway(first)
			t.wait(d, until, why)
		}
		return ready, later
	}
	if first.probing != 0 { // another document each time, if possible one that the service has not failed on
		i := t.state.Turn % len(waiting)
		if fresh := slices.IndexFunc(waiting, func(d *document) bool { return !suspected(d) }); fresh >= 0 {
			i = fresh
		}
		waiting[0], waiting[i] = waiting[i], waiting[0]
	}
	return append(ready, waiting[:n]...), append(later, waiting[n:]...)
}

// isAway reports whether a service is away, so that documents must not wait for it in a flight.
func (t *turn) isAway(e *enricher) bool {
	return e.circuit == shard.CircuitOpen && t.config.Retry.Away(e.row, t.now())
}

// awaitsEnricher returns the service that the flight ends for, nil if it goes on. The flight
// ends if all of its documents wait for services that are away. Its messages return when the
// first of these services may be back. One of their documents is then the probe.
func (t *turn) awaitsEnricher() (first *enricher) {
	for _, d := range t.docs {
		if d.newest() == nil {
			continue
		}
		if !d.away {
			return nil
		}
		if e := t.enricherOf(d); e != nil && (first == nil || e.row.OpenUntil < first.row.OpenUntil) {
			first = e
		}
	}
	return first
}

func suspected(d *document) bool { return strings.HasPrefix(d.row.LastError, enrichFailed) }

// enrichRoom returns how many of the documents a service may be asked about now. If n is 0,
// until says when to try again and why gives the reason.
func (t *turn) enrichRoom(ctx context.Context, e *enricher, documents int) (n int, until shard.Micros, why string) {
	// The first round has enough time, which synth has checked. A later one starts only if a
	// request still has its whole time-out.
	if e.rounds > 0 && t.enrichWindow() < e.set.Timeout {
		return 0, t.now(), "no time is left to enrich it"
	}
	if e.read = e.read || e.look(ctx); !e.read {
		return 0, t.now().Add(t.config.Retry.BackoffMin), "the enricher's health could not be read"
	}
	if e.circuit == shard.CircuitProbe && e.probing == 0 {
		until := t.now().Add(e.set.Timeout + t.config.Index.Guard)
		if e.isProber(ctx, until) {
			e.probing, e.rounds = until, e.rounds+1
			return 1, 0, ""
		}
	}
	if e.circuit != shard.CircuitClosed {
		return 0, e.behindCircuit(e.next, e.row.Level), "its enricher is away"
	}
	size, atOnce := e.size(t.now())
	n = min(documents, size*atOnce)
	if pace := shard.Pace(e.row, t.now()); pace > 0 {
		if ahead := t.payEnricher(ctx, e, shard.Cost(float64(n), pace)); ahead > 0 {
			return 0, t.now().Add(ahead + time.Duration(t.jitter()*float64(ahead+slotMost))),
				"its enricher throttles: its budget is spoken for"
		}
	}
	e.rounds++
	return n, 0, ""
}

// payEnricher takes the next time of a service's budget and waits for it. If too much is taken
// ahead, it returns how much.
func (t *turn) payEnricher(ctx context.Context, e *enricher, long time.Duration) time.Duration {
	end, ok := e.spend(ctx, long, slotNear)
	if !ok {
		return max(shard.Ahead(e.row, t.now()), slotNear)
	}
	// If the invocation ends here, only this time is lost.
	_ = t.clock.Sleep(ctx, end.Add(-long).Sub(t.now()))
	return 0
}

// size returns how many documents a request has, and atOnce how many requests run in parallel. A
// service that was late gets one request at a time, as large as its pace allows within the
// time-out.
func (e *enricher) size(now shard.Micros) (size, atOnce int) {
	if pace := shard.Pace(e.row, now); pace > 0 {
		return min(max(int(shard.Worth(e.set.Timeout, pace)), 1), e.set.Batch), 1
	}
	return e.set.Batch, e.set.MaxConcurrency
}

// enrichWindow returns how long the next enrichment may take. The rest of the time is for the
// sink.
func (t *turn) enrichWindow() time.Duration {
	left := t.remaining() - sinkMargin
	return max(left-t.config.Index.SinkDeadline, left/2)
}

// asked is a document that a service is asked about.
type asked struct {
	d      *document
	plain  []byte
	inputs []byte
	enrich.Outcome
	after  time.Duration // how long the service asked to wait
	failed bool          // its request was not answered
	cut    bool          // this turn had no time for it, or not enough
	blame  bool          // it was alone in its request, and the service fails on it
}

// late ends the question about a document because its time is over. Neither side is to blame.
func (a *asked) late() {
	a.Outcome, a.after, a.failed, a.cut = enrich.Outcome{
		Kind:   enrich.Throttled,
		Reason: "no time was left",
	}, 0, false, true
}

// enrich adds the services' fields to claimed documents. It returns the documents that can be
// written. The leases of the others are released.
func (t *turn) enrich(ctx context.Context, docs []*document) (ready []*document) {
	var e *enricher
	var all []*asked
	for _, d := range docs {
		of := t.enricherOf(d)
		if of == nil || d.body == nil {
			ready = append(ready, d)
			continue
		}
		plain, fault := sink.Plain(d.body)
		a := &asked{d: d, plain: plain}
		if fault == nil {
			a.inputs = of.inputs.Of(plain)
		}
		if a.inputs == nil { // no inputs; or the body is invalid, and the sink will say why
			ready = append(ready, d)
			continue
		}
		e = of // enrichable returns documents of one collection only
		all = append(all, a)
	}
	if len(all) == 0 {
		return ready
	}
	t.askEnricher(ctx, e, all)
	var others []*asked
	for _, a := range all {
		if t.merge(e, a); a.Kind == enrich.Enriched {
			ready = append(ready, a.d)
		} else {
			others = append(others, a)
		}
	}
	t.finishAll(len(others), func(i int) func() { return t.unenriched(ctx, e, others[i]) })
	return ready
}

// merge puts the fields into the document. If they do not fit, its enrichment has failed.
func (t *turn) merge(e *enricher, a *asked) {
	if a.Kind != enrich.Enriched {
		return
	}
	body, err := enrich.Merge(a.plain, a.Fields)
	switch {
	case err != nil:
		a.Kind, a.Reason = enrich.Failed, err.Error()
	case t.remaining()-sinkMargin < time.Second: // see mayWrite
		a.Outcome = enrich.Outcome{Kind: enrich.Throttled, Reason: "no time is left to write it"}
	default:
		a.d.body = body
		n := t.about(a.d, a.d.newest(), journal.Enriched, string(e.set.Kind))
		n.Count = len(body) - len(a.plain)
		t.note(n)
	}
}

// unenriched ends the claim of a document without its fields. Nothing was sent to the sink.
func (t *turn) unenriched(ctx context.Context, e *enricher, a *asked) func() {
	refused := a.Kind == enrich.Failed || a.blame
	switch {
	case a.Kind == enrich.Rejected:
		return t.rejecting(ctx, a.d, deadletter.EnrichRejected, a.Reason)
	case refused && t.lastRefusal(a.d):
		return t.rejecting(ctx, a.d, deadletter.Refusals, "enrich: "+a.Reason)
	}
	why := "enrich " + a.Kind.String() + ": " + a.Reason
	if a.failed {
		why = enrichFailed + a.Reason
	}
	after := a.after
	if a.d.away = t.isAway(e); e.circuit != shard.CircuitClosed {
		after = max(after, e.behindCircuit(e.next, e.row.Level).Sub(t.now()))
	}
	return t.release(ctx, a.d, why, after, refused)
}

// tally counts the answers of one round.
type tally struct {
	served, throttled int           // documents
	after             time.Duration // how long the service asked to wait
	answered          bool          // a request was answered, whatever the answer
	down              bool          // a request had no answer, and no suspected document was the cause
}

// askEnricher fills in the outcomes. If the service fails on a request, its halves are tried, so
// that one bad document is found and the others are enriched. If the service has answered
// nothing yet, only one failed request is halved: a service that is down must not be asked
// often.
func (t *turn) askEnricher(ctx context.Context, e *enricher, all []*asked) {
	end := t.clock.Now().Add(t.enrichWindow())
	var n tally
	size, atOnce := e.size(t.now())
	for groups := groupAsked(all, size); len(groups) > 0; {
		failures := fanout.Map(t.parallel, atOnce, groups, func(g []*asked) *enrich.Failure {
			return t.askGroup(ctx, e, g, end)
		})
		groups = t.count(e, groups, failures, &n)
	}
	t.judgeEnricher(ctx, e, n)
}

// count handles the answers of one wave of requests. It returns the halves to ask next.
func (t *turn) count(e *enricher, groups [][]*asked, failures []*enrich.Failure, n *tally) (halves [][]*asked) {
	wave := false // a request of this wave was answered
	var failed [][]*asked
	for i, g := range groups {
		f := failures[i]
		if f == nil {
			for _, a := range g {
				switch {
				case a.Kind != enrich.Throttled:
					wave = true
					n.served++
				case !a.cut:
					n.throttled++
				}
			}
			continue
		}
		t.note(journal.Note{Step: journal.EnrichFailed, Count: len(g), Detail: string(e.collection) + ": " + f.Reason})
		for _, a := range g {
			a.Outcome = enrich.Outcome{Kind: enrich.Throttled, Reason: f.Reason}
			a.after, a.failed = f.RetryAfter, !f.Throttled
		}
		switch suspect := len(g) == 1 && suspected(g[0].d) && e.probing == 0; {
		case f.Throttled, f.Late && !suspect:
			n.throttled, n.after = n.throttled+len(g), max(n.after, f.RetryAfter)
		case f.Smaller:
			failed = append(failed, g)
		default:
			n.down = n.down || !suspect
		}
	}
	n.answered = n.answered || wave
	for _, g := range failed {
		half := len(g) / 2
		switch {
		case half > 0 && (n.answered || len(halves) == 0):
			halves = append(halves, g[:half], g[half:])
		case half > 0 || !suspected(g[0].d) || e.probing != 0:
			n.down = true
		}
		// The service answered other documents, now or when it failed on this one before.
		g[0].blame = half == 0 && (wave || g[0].d.row.Refusals > 0)
	}
	return halves
}

// groupAsked splits documents into requests, bounded by the batch size and by bytes.
func groupAsked(all []*asked, batch int) (groups [][]*asked) {
	size := 0
	for i, a := range all {
		last := len(groups) - 1
		if i == 0 || len(groups[last]) == batch || size+len(a.inputs) > enrich.MaxRequest {
			groups, last, size = append(groups, nil), last+1, 0
		}
		groups[last] = append(groups[last], a)
		size += len(a.inputs)
	}
	return groups
}

// askGroup sends one request and returns why it had no answer. If this turn cut the request
// short, that says nothing about the service.
func (t *turn) askGroup(ctx context.Context, e *enricher, g []*asked, end time.Time) *enrich.Failure {
	limit := min(e.set.Timeout, end.Sub(t.clock.Now()))
	if limit < shortestAsk {
		for _, a := range g {
			a.late()
		}
		return nil
	}
	docs := make([]enrich.Document, len(g))
	for i, a := range g {
		docs[i] = enrich.Document{
			ID: a.d.id.ID(), Collection: string(e.collection), Version: a.d.version, Inputs: a.inputs,
		}
	}
	call, cancel := t.clock.Deadline(ctx, limit)
	defer cancel()
	var got enrich.Answer
	failure := &enrich.Failure{Reason: "this program cannot ask it"}
	if e.caller != nil {
		p := t.catch("ask the enricher", "", func() { got, failure = enrich.Ask(call, e.caller, docs) })
		if p != nil {
			failure = &enrich.Failure{Smaller: true, Reason: p.Error()}
		}
	}
	n := journal.Note{Step: journal.EnrichCalled, Count: len(g), Detail: string(e.collection)}
	if got.Strange > 0 {
		n.Detail += fmt.Sprintf(": the answer has %d documents that were not asked for", got.Strange)
	}
	t.note(n)
	short := failure != nil && limit < e.set.Timeout && call.Err() != nil
	for i, a := range g {
		switch {
		case short:
			a.late()
		case failure == nil:
			a.Outcome, a.after, a.failed = got.Outcomes[i], 0, false
		}
	}
	if short {
		return nil
	}
	return failure
}

// judgeEnricher updates the service's health row for the other flights, as judgeHealth does for
// the sink.
func (t *turn) judgeEnricher(ctx context.Context, e *enricher, n tally) {
	switch pace := shard.Pace(e.row, t.now()); {
	case n.throttled > 0 && n.served == 0 && (n.after > 0 || e.probing != 0 || pace > 0 && pace <= shard.TripPace),
		n.throttled == 0 && n.down && !n.answered:
		t.tripEnricher(ctx, e, n.after)
	case n.throttled > 0:
		e.slow(ctx, n.served, n.throttled, 0)
	case e.probing != 0 && n.answered:
		e.closed(ctx, e.probing, shard.Restart(e.row, t.now()))
		e.probing = 0
	}
}

// tripEnricher opens the service's circuit for all flights, longer at each level.
func (t *turn) tripEnricher(ctx context.Context, e *enricher, after time.Duration) {
	level, until := e.opening(t.now(), after)
	e.circuit, e.next, e.probing = shard.CircuitOpen, until+1, 0
	if e.open(ctx, level, until) {
		t.note(journal.Note{
			Step: journal.EnrichAway, Count: int(level), Until: until.Time(), Detail: string(e.collection),
		})
	}
	if other := e.row.OpenUntil; other > t.now() && !shard.Absurd(other, t.now()) { // another flight was first
		e.next = other + 1
	}
}
