package index

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// notLoaded starts the last error of a row whose payload could not be loaded.
const notLoaded = "payload: "

// The longest wait before a payload is loaded again: mostPatience if it should exist,
// mostIfMissing if its source does not show it.
const (
	mostPatience  = 4 * time.Minute
	mostIfMissing = 15 * time.Minute
)

// origin is one place that payloads by reference are loaded from, as this turn knows it: a
// source with the setting fetch, or all places that messages refer to.
type origin struct {
	away     string        // why it cannot be loaded from in this turn, "" if it can
	after    time.Duration // how long it asked to wait
	answered bool          // it has answered in this turn
	took     time.Duration // how long its last answers took together
}

func (t *turn) origin(d *document) *origin {
	o := t.origins[d.reference.Fetch]
	if o == nil {
		o = &origin{}
		t.origins[d.reference.Fetch] = o
	}
	return o
}

// mayLoad reports whether a document may be claimed now: there must be time to load it and to
// start its write. An origin that failed before first gets a request for one document.
func (t *turn) mayLoad(d *document, probes map[*origin]bool) bool {
	o := t.origin(d)
	if left := t.remaining() - sinkMargin; o.took > left/2 || o.took*3/2+leastWrite >= left {
		return false
	}
	if !t.cautious || o.answered {
		return true
	}
	asked := probes[o]
	probes[o] = true
	return !asked
}

// fetch loads the payloads of claimed documents that are references. It returns the documents
// that can be written.
//
// The content behind a reference may change. So no claim of another invocation may lie between
// load and write: older content could overwrite newer content. If a payload cannot be loaded
// now, its lease is released without counting a refusal, because the sink was not asked.
func (t *turn) fetch(ctx context.Context, docs []*document) (ready []*document) {
	t.loadReferences(ctx, docs)
	ready, unloaded := split(docs, func(d *document) bool {
		if d.reference != nil && d.unloaded == "" && !t.mayWrite() {
			d.unloaded = notLoaded + "no time is left to write it"
		}
		t.noteFetched(d)
		return d.unloaded == ""
	})
	t.finishAll(len(unloaded), func(i int) func() {
		d := unloaded[i]
		return t.release(ctx, d, d.unloaded, d.loadAfter, false)
	})
	return ready
}

// noteFetched notes the answer of a source that has the setting fetch.
func (t *turn) noteFetched(d *document) {
	if d.reference == nil || d.reference.Fetch == "" {
		return
	}
	n := t.about(d, d.newest(), journal.Fetched, d.reference.Fetch)
	if n.Count = len(d.body); d.unloaded != "" || d.fault != "" {
		n.Step, n.Count, n.Detail = journal.FetchFailed, 0, n.Detail+": "+cmp.Or(d.unloaded, d.fault)
	}
	t.note(n)
}

// loadReferences loads the references of the documents in half of the remaining time. The other
// half is for the sink.
func (t *turn) loadReferences(ctx context.Context, docs []*document) {
	docs = slices.DeleteFunc(slices.Clone(docs), func(d *document) bool { return d.reference == nil })
	if len(docs) == 0 {
		return
	}
	ctx, cancel := t.clock.Deadline(ctx, (t.remaining()-sinkMargin)/2)
	defer cancel()
	began := t.clock.Now()
	errs := fanout.Map(t.parallel, maxParallel, docs, func(d *document) error {
		return t.apart(d, func() error { return t.loadReference(ctx, d) })
	})
	t.judgeOrigins(docs, errs, t.clock.Now().Sub(began))
	for i, d := range docs {
		if t.lost("load the payload", d.id, errs[i]) {
			why, _ := unavailable(errs[i], "it cannot be loaded now")
			d.unloaded, d.loadAfter = notLoaded+why, max(t.origin(d).after, t.patience(d, mostPatience))
		}
	}
}

// unavailable returns the problem that a source reports about itself, and how long it asks to
// wait. If the error is about one payload only, it returns the given why.
func unavailable(err error, why string) (string, time.Duration) {
	var source *source.Unavailable
	if errors.As(err, &source) {
		return source.Problem, source.RetryAfter
	}
	return why, 0
}

// judgeOrigins marks the origins as away that loaded nothing or asked for a wait. The other
// documents of this turn are then not claimed for them.
func (t *turn) judgeOrigins(docs []*document, errs []error, took time.Duration) {
	answered := map[*origin]bool{}
	for i, d := range docs {
		o := t.origin(d)
		o.took = took
		if errs[i] == nil {
			answered[o], o.answered = true, true
		}
	}
	for i, err := range errs {
		if err == nil {
			continue
		}
		o := t.origin(docs[i])
		why, after := unavailable(err, "payloads cannot be loaded now")
		if o.after = max(o.after, after); !answered[o] || o.after > 0 {
			o.away = cmp.Or(o.away, why)
		}
	}
}

// loadReference loads one payload. It returns an error if the payload cannot be loaded now.
func (t *turn) loadReference(ctx context.Context, d *document) error {
	e := d.newest()
	data, err := t.loadFrom(ctx, d.reference)
	var fault *event.Invalid
	switch {
	case err == nil:
		ev := *d.reference
		ev.Data = string(data)
		t.makeBody(d, *t.message(e), ev)
	case !errors.As(err, &fault):
		return err
	case fault.Missing:
		t.notThere(d, fault)
	default:
		d.fault, d.faultFor = fault.Detail(), deadletter.Payload
	}
	return nil
}

func (t *turn) loadFrom(ctx context.Context, ev *event.Event) ([]byte, error) {
	if ev.Fetch != "" {
		return t.h.Fetcher.Fetch(ctx, ev.Fetch, ev.DataRef)
	}
	return t.h.Payloads.Load(ctx, ev.DataRef)
}

// notThere handles a document that its origin does not show. If it was removed after this event,
// a delete is on its way and supersedes the event. If it is new, a replica may lag.
func (t *turn) notThere(d *document, fault *event.Invalid) {
	e, missing := d.newest(), source.MissingDeadLetter
	if f := t.config.Sources[d.reference.Fetch].Fetch; f != nil {
		missing = f.Missing
	}
	switch waited := t.now() >= e.Admitted.Add(t.config.Payload.MissingWait); {
	case !waited || missing == source.MissingWait:
		// The delete has its own flight and does not wait for these tries. So a few tries are
		// enough.
		d.unloaded = notLoaded + "it is not there: a delete may be on its way"
		d.loadAfter = t.patience(d, mostIfMissing)
	case missing == source.MissingDelete:
		// A newer event supersedes this delete, as it would the put.
		e.Op, d.body = shard.Delete, nil
	default:
		d.fault, d.faultFor = fault.Detail(), deadletter.Payload
	}
}

// stale handles a document whose replica shows an older state than the event.
func (t *turn) stale(d *document, fault *event.Invalid) {
	e := d.newest()
	sent := t.message(e).Sent
	if t.config.Retry.Overdue(sent, d.reference.NotBefore, t.clock.Now()) {
		d.fault, d.faultFor = fault.Detail(), deadletter.StaleSource
		return
	}
	d.unloaded = string(deadletter.StaleSource) + ": " + fault.Problem
	d.loadAfter = t.patience(d, mostPatience)
}

// patience returns the shortest wait before a document is loaded again: half of the time that it
// has waited already. So an origin is not asked often for long.
func (t *turn) patience(d *document, most time.Duration) time.Duration {
	return min(t.now().Sub(d.newest().Admitted)/2, most)
}

// tried reports whether the last try to load a document of the flight failed.
func (t *turn) tried() bool {
	return slices.ContainsFunc(t.docs, func(d *document) bool { return strings.HasPrefix(d.row.LastError, notLoaded) })
}
