// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// preparer decodes the messages of documents and builds their bodies.
type preparer struct {
	*builder
	origins *origins
	decoded map[int]*decoded // the key is the number of the record in the manifest
}

// prepare decodes the messages again and builds the body of each document whose payload is in its
// message. A payload by reference is loaded later, under the lease: see fetch. A document that can
// never be built is claimed too, and then rejected. If a message is a pointer, prepare loads its
// body here, for at most half of the remaining time.
//
// prepare stops when the bytes of one bulk request are reached, or the number of references that
// are loaded in parallel. The result rest is for the next round.
func (s *preparer) prepare(ctx context.Context, docs []*document) (ready, rest []*document) {
	ctx, cancel := s.clock.Deadline(source.LoadAtMost(ctx, maxLoadBytes), (s.remaining()-sinkMargin)/2)
	defer cancel()
	limit, bytes, references := s.config.Sinks[s.sinkName].BulkBytes, int64(0), 0
	var more []*document // documents with more references than this round loads
	probes := map[*origin]bool{}
	// The first part is taken even if its bytes alone exceed the limit of a bulk request.
	for rest = docs; len(rest) > 0 && ctx.Err() == nil && (bytes == 0 || bytes < int64(limit)) &&
		references < maxParallel; {
		part := rest[:min(maxParallel, len(rest))]
		rest = rest[len(part):]
		s.decode(ctx, part)
		errs := fanout.Map(s.parallel, maxParallel, part, func(d *document) error {
			return s.buildApart(d, func() error { return s.prepareOne(ctx, d) })
		})
		s.forget(rest)
		for i, d := range part {
			s.noteFailed("load the message", d.id, errs[i])
			later := s.now().Add(s.delay(s.state.Turn))
			switch bytes += int64(len(d.body)); {
			case errs[i] != nil:
				s.wait(d, later, "the message cannot be loaded now")
			case d.reference != nil && s.origins.origin(d).away != "":
				s.wait(d, max(later, s.now().Add(s.origins.origin(d).after)), s.origins.origin(d).away)
			case d.reference != nil && (references == maxParallel || !s.origins.mayLoad(d, probes)):
				more = append(more, d)
			case d.reference != nil:
				references++
				fallthrough
			default:
				ready = append(ready, d)
			}
		}
	}
	return ready, append(more, rest...)
}

// prepareOne returns why the document cannot be built now. If the document can never be built,
// prepareOne records a fault in it.
func (s *preparer) prepareOne(ctx context.Context, d *document) error {
	e := d.newest()
	m := s.message(e)
	d.body, d.fault, d.faultFor, d.reference, d.unloaded, d.loadAfter = nil, "", "", nil, "", 0
	// The manifest has the message as received. The message decodes as it did in receive, unless
	// the settings changed.
	results := s.results(ctx, e)
	invalid := results[min(e.Index, len(results)-1)].Invalid
	if invalid != nil && invalid.Transient() {
		return invalid.Err
	}
	if invalid != nil || e.Index >= len(results) || results[e.Index].Event.Doc != d.id {
		d.fault = "the message decodes differently than when it was held: were the source's settings changed?"
		d.faultFor = deadletter.Contract
		return nil //nolint:nilerr // the document has the fault, and a retry cannot help
	}
	ev := results[e.Index].Event
	d.version = ev.Version
	switch {
	case e.Op == shard.Delete:
	case ev.DataRef == "":
		s.makeBody(d, *m, ev)
	case ev.Fetch == "" && s.origins.payloads == nil, ev.Fetch != "" && s.origins.fetcher == nil:
		d.fault, d.faultFor = "dataref: payloads by reference are not configured", deadletter.Payload
	default:
		d.reference = &ev
	}
	return nil
}
