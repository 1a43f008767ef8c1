package index

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/enrich"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Documents of some collections are enriched between their claim and their write: a service adds
// fields to them (docs/enrich.md). Nothing was asked of the sink by then. So whatever goes wrong
// ends in RELEASE or REJECT, which the protocol has, and no outcome is ever unknown.

// enrichFailed begins the last error of a row whose document a service failed on. It is then under
// suspicion itself: the next failure of it alone says nothing of the service.
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

	read    bool         // its health
	probing shard.Micros // this turn is the one prober, until then; 0 for not
	rounds  int
}

// enricherOf returns the service for a document, nil for none.
func (t *turn) enricherOf(d *document) *enricher {
	c := d.id.Collection()
	set := t.h.Config.EnrichFor(c)
	if set == nil || d.fault != "" || d.newest().Op == shard.Delete {
		return nil
	}
	e := t.enrichers[c]
	if e == nil {
		inputs, _ := enrich.ParseInputs(set.Inputs) // the settings were held to the pattern of pointers
		e = &enricher{
			service:    service{kind: "enricher", name: enrich.HealthName(c)},
			collection: c, set: set, caller: t.h.Enrichers[c], inputs: inputs,
		}
		t.enrichers[c] = e
	}
	return e
}

// enrichable cuts off what may be claimed now: no more than can be enriched and written in this
// invocation, and of one collection that is enriched. Where its service is away or has no room the
// documents wait, unclaimed. later is for the next round.
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
	if first.probing != 0 { // another one each time, and rather one that it has not failed on
		i := t.state.Turn % len(waiting)
		if fresh := slices.IndexFunc(waiting, func(d *document) bool { return !suspected(d) }); fresh >= 0 {
			i = fresh
		}
		waiting[0], waiting[i] = waiting[i], waiting[0]
	}
	return append(ready, waiting[:n]...), append(later, waiting[n:]...)
}

// isAway reports whether nothing is to wait for a service in a flight.
func (t *turn) isAway(e *enricher) bool {
	return e.circuit == shard.CircuitOpen && t.h.Config.Retry.Away(e.row, t.now())
}

// awaitsEnricher reports whether the flight ends because all that it holds waits for services that
// are away for long. Its messages come back, and the first of them probes.
func (t *turn) awaitsEnricher() bool {
	return !slices.ContainsFunc(t.docs, func(d *document) bool { return d.newest() != nil && !d.away })
}

func suspected(d *document) bool { return strings.HasPrefix(d.row.LastError, enrichFailed) }

// enrichRoom is how many of so many documents a service may be asked about now. 0 comes with when
// to try again, and why not now.
func (t *turn) enrichRoom(ctx context.Context, e *enricher, documents int) (n int, until shard.Micros, why string) {
	// The first round has the time that synth has checked. A later one begins where a request still
	// has all of its own.
	if e.rounds > 0 && t.enrichWindow() < e.set.Timeout {
		return 0, t.now(), "no time is left to enrich it"
	}
	if e.read = e.read || t.look(ctx, &e.service); !e.read {
		return 0, t.now().Add(t.h.Config.Retry.BackoffMin), "the enricher's health could not be read"
	}
	if e.circuit == shard.CircuitProbe && e.probing == 0 {
		until := t.now().Add(e.set.Timeout + t.h.Config.Index.Guard)
		if t.isProber(ctx, &e.service, until) {
			e.probing, e.rounds = until, e.rounds+1
			return 1, 0, ""
		}
	}
	if e.circuit != shard.CircuitClosed {
		return 0, t.behindCircuit(e.next, e.row.Level), "its enricher is away"
	}
	size, atOnce := e.size(t.now())
	n = min(documents, size*atOnce)
	if pace := shard.Pace(e.row, t.now()); pace > 0 {
		if ahead := t.payEnricher(ctx, e, shard.Cost(float64(n), pace)); ahead > 0 {
			return 0, t.now().Add(ahead + time.Duration(t.h.Jitter()*float64(ahead+slotMost))),
				"its enricher throttles: its budget is spoken for"
		}
	}
	e.rounds++
	return n, 0, ""
}

// payEnricher takes the next time of a budget and waits for it. Where too much is handed out ahead,
// it returns how much.
func (t *turn) payEnricher(ctx context.Context, e *enricher, long time.Duration) time.Duration {
	end, ok := t.spend(ctx, &e.service, long, slotNear)
	if !ok {
		return max(shard.Ahead(e.row, t.now()), slotNear)
	}
	// An invocation that ends here loses its time, nothing else.
	_ = t.h.Clock.Sleep(ctx, end.Add(-long).Sub(t.now()))
	return 0
}

// size is how many documents a request has, and atOnce how many requests are under way. A service
// that was late gets one request, of what its pace allows within the time-out.
func (e *enricher) size(now shard.Micros) (size, atOnce int) {
	if pace := shard.Pace(e.row, now); pace > 0 {
		return min(max(int(shard.Worth(e.set.Timeout, pace)), 1), e.set.Batch), 1
	}
	return e.set.Batch, e.set.MaxConcurrency
}

// enrichWindow is how long the enrichment of what comes next may take: the rest is for the sink.
func (t *turn) enrichWindow() time.Duration {
	left := t.remaining() - sinkMargin
	return max(left-t.h.Config.Index.SinkDeadline, left/2)
}

// asked is a document that a service is asked about.
type asked struct {
	d      *document
	plain  []byte
	inputs []byte
	enrich.Outcome
	after  time.Duration // how long the service wants to be left alone
	failed bool          // its request had no answer
	cut    bool          // this turn had no time for it, or not enough
	blame  bool          // it was alone in its request, and it is what the service fails on
}

// late ends the question about a document for which the time has run out: nobody is to blame.
func (a *asked) late() {
	a.Outcome, a.after, a.failed, a.cut = enrich.Outcome{
		Kind:   enrich.Throttled,
		Reason: "no time was left",
	}, 0, false, true
}

// enrich adds the fields of the collections' services to claimed documents, and returns what can be
// written. The others give their leases back.
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
		if a.inputs == nil { // nothing to ask about; or the sink says what is wrong with it
			ready = append(ready, d)
			continue
		}
		e = of // enrichable lets documents of one collection through
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

// merge puts the fields into the document. One that cannot have them has failed.
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

// unenriched ends the claim of a document without its fields. The sink was not asked for anything.
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
		after = max(after, t.behindCircuit(e.next, e.row.Level).Sub(t.now()))
	}
	return t.release(ctx, a.d, why, after, refused)
}

// tally is what the requests of one round brought.
type tally struct {
	served, throttled int           // documents
	after             time.Duration // what the service asked for
	answered          bool          // a request was answered, whatever the answer
	down              bool          // a request had no answer, and not because of a document under suspicion
}

// askEnricher fills in the outcomes. A request that the service fails on is tried once more in
// halves: a document that it cannot take is found, and the others go. Where it has answered nothing
// at all only one request is. A service that is down is not to be asked often.
func (t *turn) askEnricher(ctx context.Context, e *enricher, all []*asked) {
	end := t.h.Clock.Now().Add(t.enrichWindow())
	var n tally
	size, atOnce := e.size(t.now())
	for groups := groupAsked(all, size); len(groups) > 0; {
		failures := fanout.Map(t.h.Parallel, atOnce, groups, func(g []*asked) *enrich.Failure {
			return t.askGroup(ctx, e, g, end)
		})
		groups = t.count(e, groups, failures, &n)
	}
	t.judgeEnricher(ctx, e, n)
}

// count takes in the answers of one wave of requests, and returns the halves to be asked next.
func (t *turn) count(e *enricher, groups [][]*asked, failures []*enrich.Failure, n *tally) (halves [][]*asked) {
	wave := false // something was answered in it
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
		// The service answers others, now or when it failed on this one before.
		g[0].blame = half == 0 && (wave || g[0].d.row.Refusals > 0)
	}
	return halves
}

// groupAsked makes requests: as many documents as the settings allow, and not too many bytes.
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

// askGroup is one request. It returns why it had no answer. A request that this turn has cut short
// says nothing of the service.
func (t *turn) askGroup(ctx context.Context, e *enricher, g []*asked, end time.Time) *enrich.Failure {
	limit := min(e.set.Timeout, end.Sub(t.h.Clock.Now()))
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
	call, cancel := t.h.Clock.Deadline(ctx, limit)
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

// judgeEnricher tells the other flights how the service is, as judgeHealth does of the sink.
func (t *turn) judgeEnricher(ctx context.Context, e *enricher, n tally) {
	switch pace := shard.Pace(e.row, t.now()); {
	case n.throttled > 0 && n.served == 0 && (n.after > 0 || e.probing != 0 || pace > 0 && pace <= shard.TripPace),
		n.throttled == 0 && n.down && !n.answered:
		t.tripEnricher(ctx, e, n.after)
	case n.throttled > 0:
		t.slow(ctx, &e.service, n.served, n.throttled, 0)
	case e.probing != 0 && n.answered:
		t.closed(ctx, &e.service, e.probing, shard.Restart(e.row, t.now()))
		e.probing = 0
	}
}

// tripEnricher keeps all flights from asking for a while, longer at each level.
func (t *turn) tripEnricher(ctx context.Context, e *enricher, after time.Duration) {
	level, until := t.opening(&e.service, after)
	e.circuit, e.next, e.probing = shard.CircuitOpen, until+1, 0
	if t.open(ctx, &e.service, level, until) {
		t.note(journal.Note{
			Step: journal.EnrichAway, Count: int(level), Until: until.Time(), Detail: string(e.collection),
		})
	}
	if other := e.row.OpenUntil; other > t.now() && !shard.Absurd(other, t.now()) { // of whoever was first
		e.next = other + 1
	}
}
