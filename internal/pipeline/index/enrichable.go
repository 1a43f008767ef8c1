// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/shard"
)

// enrichers holds the enrichment services, one for each collection that has one.
type enrichers struct {
	*holding
	callers map[shard.Collection]enrich.Caller
	by      map[shard.Collection]*enricher
}

// serviceFor returns the service that enriches a document. It returns nil if the document needs no
// service.
func (s *enrichers) serviceFor(d *document) *enricher {
	c := d.id.Collection()
	set := s.config.Collections[string(c)].Enrich
	if set == nil || d.fault != "" || d.newest().Op == shard.Delete {
		return nil
	}
	e := s.by[c]
	if e == nil {
		inputs, _ := enrich.ParseInputs(set.Inputs) // Validate has checked the pointers
		e = &enricher{
			service:    service{invocation: s.invocation, kind: "enricher", name: enrich.HealthName(c)},
			collection: c, set: set, caller: s.callers[c], inputs: inputs,
		}
		s.by[c] = e
	}
	return e
}

// enrichable returns the documents that may be claimed now: no more than can be enriched and
// written in this invocation, and from at most one collection with a service. If that service is
// away or busy, the documents wait unclaimed. The result later is for the next round.
func enrichable(ctx context.Context, s *enrichers, docs []*document) (ready, later []*document) {
	var first *enricher
	var waiting []*document
	for _, d := range docs {
		switch e := s.serviceFor(d); {
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
	n, until, why := first.room(ctx, len(waiting))
	if n == 0 {
		for _, d := range waiting {
			d.away = first.isAway()
			s.wait(d, until, why)
		}
		return ready, later
	}
	// probe with another document each time, if possible with one that the service has not failed
	// on
	if first.probing != 0 {
		i := s.state.Turn % len(waiting)
		if fresh := slices.IndexFunc(waiting, func(d *document) bool { return !suspected(d) }); fresh >= 0 {
			i = fresh
		}
		waiting[0], waiting[i] = waiting[i], waiting[0]
	}
	return append(ready, waiting[:n]...), append(later, waiting[n:]...)
}

// awaited returns the service because of which the flight ends, or nil if the flight continues. The
// flight ends if all of its documents wait for services that are away. The messages return when the
// first of these services may be available again. A document of these messages is then the probe.
func (s *enrichers) awaited() (first *enricher) {
	for _, d := range s.docs {
		if d.newest() == nil {
			continue
		}
		if !d.away {
			return nil
		}
		if e := s.serviceFor(d); e != nil && (first == nil || e.row.OpenUntil < first.row.OpenUntil) {
			first = e
		}
	}
	return first
}

// suspected reports whether the service failed on this document before.
func suspected(d *document) bool { return strings.HasPrefix(d.row.LastError, enrichFailed) }
