// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"slices"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// turn is one invocation for one flight: the stages, and what the stages share.
type turn struct {
	*holding
	messages *messages
	sink     *health
	budget   *budget
	engine   *engine
	closer   *closer
	mirror   *mirror

	decider   decider
	admitter  admitter
	preparer  preparer
	keeper    keeper
	enrichers *enrichers
	claimer   claimer
	loader    loader
	enriching enriching
	writer    writer
	refusals  refusals
	planner   planner

	reasserter reasserter // writes deletes again after an outage
}

// turn connects the stages of a turn. The stages share nothing that is not listed here.
func (h *Handler) turn(f *holding) *turn {
	v := f.invocation
	e := &engine{v, h.Sink}
	s := &health{service: service{invocation: v, kind: "sink", name: h.SinkName}, engine: e}
	b := &budget{holding: f, sink: s}
	c := &closer{holding: f, dead: h.Dead, sink: s}
	m := &messages{holding: f, queue: h.Queues[f.lane]}
	build := &builder{f, h.Sources}
	from := &origins{invocation: v, payloads: h.Payloads, fetcher: h.Fetcher, by: map[string]*origin{}}
	services := &enrichers{f, h.Enrichers, map[shard.Collection]*enricher{}}
	copies := &mirror{e, s}
	end := &ending{m, b, h.Flights}
	x := &execution{v, h.Flights, h.Launcher, max(v.state.Entered.Sub(shard.MicrosOf(v.start)), 0)}
	return &turn{
		holding: f, messages: m, sink: s, budget: b, engine: e, closer: c, mirror: copies,
		decider: decider{f}, admitter: admitter{m}, preparer: preparer{build, from, map[int]*decoded{}},
		keeper: keeper{f, h.Sink, map[shard.Collection]string{}}, enrichers: services, claimer: claimer{f, h.NewToken},
		loader: loader{build, from}, enriching: enriching{services, c}, writer: writer{f, e, b},
		refusals:   refusals{invocation: v, engine: e, budget: b, verdicts: map[shard.Collection]verdict{}},
		planner:    planner{m, s, b, services, end, x},
		reasserter: reasserter{f, h.NewToken, c, e, copies},
	}
}

// run does the stages of a turn in their order. A failure inside keeps the affected messages in the
// flight, and never fails the whole turn.
func (t *turn) run(ctx context.Context) flight.State {
	if t.holdEnds() {
		return t.planner.ending.endBeforeTwelveHours(ctx)
	}
	// Step 2 comes first: the messages stay invisible for this turn and the next, whatever happens
	// in this turn.
	t.messages.extend(ctx, shard.MicrosOf(t.start.Add(2*t.config.Index.Timeout)))
	t.sink.read(ctx)
	t.budget.awaitSlot(ctx)
	if t.budget.mustRequeue() {
		return t.planner.ending.requeue(ctx)
	}
	claims, behind := t.decider.decide(ctx)
	claims = append(claims, t.admitter.admit(ctx, behind)...)
	claims = t.budget.postponeIfOpen(claims)
	claims = parkPanics(ctx, t.closer, claims)
	t.loader.origins.cautious = lastLoadFailed(t.docs)
	// Messages that are done according to their rows need no write, so they do not wait for the
	// sink.
	t.messages.deleteDone(ctx)
	claims = t.budget.claimsInSlot(ctx, claims)
	var unwritten []*document
	for _, group := range rounds(claims, &t.state, t.loader.origins.cautious, t.budget.slot != 0) {
		unwritten = append(unwritten, t.round(ctx, group)...)
	}
	t.budget.yieldRest(ctx)
	t.budget.postpone(ctx, unwritten)
	// Give messages back after all deletions, because giving a message back removes its other
	// events from the flight.
	t.messages.giveBack(ctx)
	return t.planner.finish(ctx)
}

// round writes a group of documents, one request at a time. It returns the documents for which no
// time was left.
func (t *turn) round(ctx context.Context, group []*document) (unwritten []*document) {
	for len(group) > 0 && t.budget.mayWrite() {
		part, later := t.budget.portion(ctx, group)
		ready, rest := t.preparer.prepare(ctx, part)
		changed := t.keeper.keep(ctx, ready)
		now, next := enrichable(ctx, t.enrichers, changed)
		claimed := t.claimer.claim(ctx, now)
		loaded := fetch(ctx, &t.loader, t.budget, t.closer, claimed)
		changed = unchanged(ctx, t.closer, loaded)
		enriched := t.enriching.enrich(ctx, changed)
		t.write(ctx, enriched)
		t.messages.deleteDone(ctx)
		if len(rest) == len(part) {
			break // no time is left to load anything
		}
		for _, d := range ready {
			d.body = nil // a function's memory may not hold all payloads of a flight
		}
		group = slices.Concat(rest, next, later)
	}
	return group
}

// write sends claimed documents to the sink and ends their claims by the sink's answer.
func (t *turn) write(ctx context.Context, docs []*document) {
	r := t.writer.write(ctx, docs)
	if r.answered() {
		t.refusals.explain(ctx, r)
		t.noteConfiguration(r.outcomes)
		// Judge before the outcomes are carried out, so that a RELEASE waits for the circuit
		// breaker that this request opened.
		t.sink.judge(ctx, r)
		t.mirror.write(ctx, r.ops, r.outcomes)
	}
	carryOut(ctx, t.closer, r)
}
