// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/journal"
)

// inquiry is a document that an enrichment service is asked about.
type inquiry struct {
	d      *document
	plain  []byte
	inputs []byte
	enrich.Outcome
	after  time.Duration // how long the service asked lull to wait
	failed bool          // the request of this document got no answer
	cut    bool          // this turn had no time or too little time for the document
	blame  bool          // the document was alone in its request, and the service fails on it
}

// endLate ends the question about a document because time ran out. Neither the document nor the
// service is to blame.
func (a *inquiry) endLate() {
	a.Outcome, a.after, a.failed, a.cut = enrich.Outcome{
		Kind:   enrich.Throttled,
		Reason: "no time was left",
	}, 0, false, true
}

// tally counts the answers of one round of requests.
type tally struct {
	served, throttled int           // documents
	after             time.Duration // how long the service asked lull to wait
	answered          bool          // a request got an answer, whatever the answer was
	down              bool          // a request got no answer, and no suspected document was the cause
}

// askAll fills in the outcomes. If the service fails on a request, askAll asks again about each
// half of its documents. So one bad document is found and the other documents are enriched. If the
// service has answered nothing yet, only one failed request is halved, because a service that is
// down must not be asked often.
func (e *enricher) askAll(ctx context.Context, all []*inquiry) {
	end := e.clock.Now().Add(e.window())
	var n tally
	size, atOnce := e.size(e.now())
	for groups := groupInquiries(all, size); len(groups) > 0; {
		failures := fanout.Map(e.parallel, atOnce, groups, func(g []*inquiry) *enrich.Failure {
			return e.askGroup(ctx, g, end)
		})
		groups = e.count(groups, failures, &n)
	}
	e.judge(ctx, n)
}

// count handles the answers of one wave of requests. It returns the halves of failed requests to
// ask next.
func (e *enricher) count(groups [][]*inquiry, failures []*enrich.Failure, n *tally) (halves [][]*inquiry) {
	wave := false // a request of this wave was answered
	var failed [][]*inquiry
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
		e.note(journal.Note{Step: journal.EnrichFailed, Count: len(g), Detail: string(e.collection) + ": " + f.Reason})
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
		// The service answered other documents, either now or when it failed on this document
		// before.
		g[0].blame = half == 0 && (wave || g[0].d.row.Refusals > 0)
	}
	return halves
}

// groupInquiries splits documents into requests, bounded by the batch size and by bytes.
func groupInquiries(all []*inquiry, batch int) (groups [][]*inquiry) {
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

// askGroup sends one request and returns why the request got no answer. If this turn cut the
// request short, that says nothing about the service.
func (e *enricher) askGroup(ctx context.Context, g []*inquiry, end time.Time) *enrich.Failure {
	limit := min(e.set.Timeout, end.Sub(e.clock.Now()))
	if limit < shortestAsk {
		for _, a := range g {
			a.endLate()
		}
		return nil
	}
	docs := make([]enrich.Document, len(g))
	for i, a := range g {
		docs[i] = enrich.Document{
			ID: a.d.id.ID(), Collection: string(e.collection), Version: a.d.version, Inputs: a.inputs,
		}
	}
	call, cancel := e.clock.Deadline(ctx, limit)
	defer cancel()
	var got enrich.Answer
	failure := &enrich.Failure{Reason: "this program cannot ask it"}
	if e.caller != nil {
		p := e.catch("ask the enricher", "", func() { got, failure = enrich.Ask(call, e.caller, docs) })
		if p != nil {
			failure = &enrich.Failure{Smaller: true, Reason: p.Error()}
		}
	}
	n := journal.Note{Step: journal.EnrichCalled, Count: len(g), Detail: string(e.collection)}
	if got.Strange > 0 {
		n.Detail += fmt.Sprintf(": the answer has %d documents that were not asked for", got.Strange)
	}
	e.note(n)
	short := failure != nil && limit < e.set.Timeout && call.Err() != nil
	for i, a := range g {
		switch {
		case short:
			a.endLate()
		case failure == nil:
			a.Outcome, a.after, a.failed = got.Outcomes[i], 0, false
		}
	}
	if short {
		return nil
	}
	return failure
}
