// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// fetch loads the payloads of claimed documents that are references. It returns the documents that
// can be written.
//
// The content behind a reference may change. So no claim of another invocation may lie between load
// and write: older content could overwrite newer content. If a payload cannot be loaded now, fetch
// releases the lease without counting a refusal, because the sink was not asked.
func fetch(ctx context.Context, l *loader, b *budget, c *closer, docs []*document) (ready []*document) {
	l.loadReferences(ctx, docs)
	ready, unloaded := split(docs, func(d *document) bool {
		if d.reference != nil && d.unloaded == "" && !b.mayWrite() {
			d.unloaded = notLoaded + "no time is left to write the document"
		}
		l.noteFetched(d)
		return d.unloaded == ""
	})
	c.finishAll(len(unloaded), func(i int) func() {
		d := unloaded[i]
		return c.release(ctx, d, d.unloaded, d.loadAfter, false)
	})
	return ready
}

// notLoaded is the beginning of the last error in a row whose payload could not be loaded.
const notLoaded = "payload: "

// These are the longest waits before a payload is loaded again: mostPatience if the payload should
// exist, and mostIfMissing if its source does not show it.
const (
	mostPatience  = 4 * time.Minute
	mostIfMissing = 15 * time.Minute
)

// loader loads payloads by reference.
type loader struct {
	*builder
	origins *origins
}

// loadReferences loads the references of the documents in half of the remaining time. The other
// half is for the write to the sink.
func (s *loader) loadReferences(ctx context.Context, docs []*document) {
	docs = slices.DeleteFunc(slices.Clone(docs), func(d *document) bool { return d.reference == nil })
	if len(docs) == 0 {
		return
	}
	ctx, cancel := s.clock.Deadline(ctx, (s.remaining()-sinkMargin)/2)
	defer cancel()
	began := s.clock.Now()
	errs := fanout.Map(s.parallel, maxParallel, docs, func(d *document) error {
		return s.buildApart(d, func() error { return s.loadReference(ctx, d) })
	})
	s.origins.judgeOrigins(docs, errs, s.clock.Now().Sub(began))
	for i, d := range docs {
		if s.noteFailed("load the payload", d.id, errs[i]) {
			why, _ := unavailable(errs[i], "the payload cannot be loaded now")
			d.unloaded, d.loadAfter = notLoaded+why, max(s.origins.origin(d).after, s.patience(d, mostPatience))
		}
	}
}

// loadReference loads one payload. It returns an error if the payload cannot be loaded now.
func (s *loader) loadReference(ctx context.Context, d *document) error {
	e := d.newest()
	data, err := s.origins.loadFrom(ctx, d.reference)
	var fault *event.Invalid
	switch {
	case err == nil:
		ev := *d.reference
		ev.Data = string(data)
		s.makeBody(d, *s.message(e), ev)
	case !errors.As(err, &fault):
		return err
	case fault.Missing:
		s.notThere(d, fault)
	default:
		d.fault, d.faultFor = fault.Detail(), deadletter.Payload
	}
	return nil
}

// notThere handles a document that its origin does not show. If the document was removed after this
// event, a delete is on its way and supersedes the event. If the document is new, a replica may
// lag.
func (s *loader) notThere(d *document, fault *event.Invalid) {
	e, missing := d.newest(), source.MissingDeadLetter
	if f := s.config.Sources[d.reference.Fetch].Fetch; f != nil {
		missing = f.Missing
	}
	switch waited := s.now() >= e.Admitted.Add(s.config.Payload.MissingWait); {
	case !waited || missing == source.MissingWait:
		// The delete has its own flight and does not wait for these tries. So a few tries are
		// enough for a missing payload.
		d.unloaded = notLoaded + "the source does not have it: a delete may be on its way"
		d.loadAfter = s.patience(d, mostIfMissing)
	case missing == source.MissingDelete:
		// A newer event supersedes this delete, as a newer event would supersede the put.
		e.Op, d.body = shard.Delete, nil
	default:
		d.fault, d.faultFor = fault.Detail(), deadletter.Payload
	}
}

// noteFetched writes a note about the answer of a source that has the setting fetch.
func (s *loader) noteFetched(d *document) {
	if d.reference == nil || d.reference.Fetch == "" {
		return
	}
	n := s.about(d, d.newest(), journal.Fetched, d.reference.Fetch)
	if n.Count = len(d.body); d.unloaded != "" || d.fault != "" {
		n.Step, n.Count, n.Detail = journal.FetchFailed, 0, n.Detail+": "+cmp.Or(d.unloaded, d.fault)
	}
	s.note(n)
}
