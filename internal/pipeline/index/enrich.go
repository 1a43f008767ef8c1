// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Documents of some collections are enriched between their claim and their write: a service adds
// fields to them (docs/enrich.md). lull has not asked the sink for anything by then. So every
// failure of a service ends in RELEASE or REJECT, and no outcome is ever unknown.

// enrichFailed is the beginning of the last error in a row if a service failed on the document. The
// document is then suspected: if the service fails again on this document alone, that says nothing
// about the service.
const enrichFailed = "enrich failed: "

// shortestAsk is the shortest time for which a request to a service is worth starting.
const shortestAsk = 20 * time.Millisecond

// enriching is the stage of a turn that adds the services' fields to documents.
type enriching struct {
	*enrichers
	closer *closer
}

// enrich adds the services' fields to claimed documents. It returns the documents that can be
// written, and releases the leases of the other documents.
func (s *enriching) enrich(ctx context.Context, docs []*document) (ready []*document) {
	var e *enricher
	var all []*inquiry
	for _, d := range docs {
		service := s.serviceFor(d)
		if service == nil || d.body == nil {
			ready = append(ready, d)
			continue
		}
		plain, fault := sink.Plain(d.body)
		a := &inquiry{d: d, plain: plain}
		if fault == nil {
			a.inputs = service.inputs.Of(plain)
		}
		if a.inputs == nil { // the document has no inputs, or its body is invalid and the sink will say why
			ready = append(ready, d)
			continue
		}
		e = service // enrichable returns only documents of one collection with a service
		all = append(all, a)
	}
	if len(all) == 0 {
		return ready
	}
	e.askAll(ctx, all)
	var others []*inquiry
	for _, a := range all {
		if s.merge(e, a); a.Kind == enrich.Enriched {
			ready = append(ready, a.d)
		} else {
			others = append(others, a)
		}
	}
	s.finishAll(len(others), func(i int) func() { return s.unenriched(ctx, e, others[i]) })
	return ready
}

// merge puts the fields into the document. If the fields do not fit, the enrichment has failed.
func (s *enriching) merge(e *enricher, a *inquiry) {
	if a.Kind != enrich.Enriched {
		return
	}
	body, err := enrich.Merge(a.plain, a.Fields)
	switch {
	case err != nil:
		a.Kind, a.Reason = enrich.Failed, err.Error()
	case s.remaining()-sinkMargin < time.Second: // mayWrite has the same limit
		a.Outcome = enrich.Outcome{Kind: enrich.Throttled, Reason: "no time is left to write it"}
	default:
		a.d.body = body
		n := s.about(a.d, a.d.newest(), journal.Enriched, string(e.set.Kind))
		n.Count = len(body) - len(a.plain)
		s.note(n)
	}
}

// unenriched ends the claim of a document that was not enriched. lull sent nothing to the sink.
func (s *enriching) unenriched(ctx context.Context, e *enricher, a *inquiry) func() {
	refused := a.Kind == enrich.Failed || a.blame
	switch {
	case a.Kind == enrich.Rejected:
		return s.closer.reject(ctx, a.d, deadletter.EnrichRejected, a.Reason)
	case refused && s.closer.lastRefusal(a.d):
		return s.closer.reject(ctx, a.d, deadletter.Refusals, "enrich: "+a.Reason)
	}
	why := "enrich " + a.Kind.String() + ": " + a.Reason
	if a.failed {
		why = enrichFailed + a.Reason
	}
	after := a.after
	if a.d.away = e.isAway(); e.circuit != shard.CircuitClosed {
		after = max(after, e.behindCircuit(e.next, e.row.Level).Sub(s.now()))
	}
	return s.closer.release(ctx, a.d, why, after, refused)
}
