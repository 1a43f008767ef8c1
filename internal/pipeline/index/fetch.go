package index

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// notLoaded begins the last error of a row whose payload could not be loaded.
const notLoaded = "payload: "

// The longest that a document waits before it is loaded again: one that should be there, and one
// whose source shows nothing.
const (
	mostPatience  = 4 * time.Minute
	mostIfMissing = 15 * time.Minute
)

// origin is where payloads by reference come from, as one turn knows it: a source with the setting
// fetch, or the places that messages refer to.
type origin struct {
	away     string        // why nothing of it can be loaded in this turn, "" where it can
	after    time.Duration // what it asked to wait
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

// mayLoad reports whether a document may be claimed now. There must be time to load it, and to
// begin to write it. An origin that failed before is asked for one document first.
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

// fetch loads the payloads of claimed documents that are references, and returns what can be
// written.
// What a reference shows may change. So no claim of another invocation may lie between its load and
// its write: an older content could follow a newer one. What cannot be loaded now gives its lease
// back without a refusal, because nothing was asked of the sink.
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

// noteFetched tells what a source answered that has the setting fetch.
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

// loadReferences loads what the documents refer to, in half of the time that is left: the other
// half is for the sink.
func (t *turn) loadReferences(ctx context.Context, docs []*document) {
	docs = slices.DeleteFunc(slices.Clone(docs), func(d *document) bool { return d.reference == nil })
	if len(docs) == 0 {
		return
	}
	ctx, cancel := t.h.Clock.Deadline(ctx, (t.remaining()-sinkMargin)/2)
	defer cancel()
	began := t.h.Clock.Now()
	errs := fanout.Map(t.h.Parallel, maxParallel, docs, func(d *document) error {
		return t.apart(d, func() error { return t.loadReference(ctx, d) })
	})
	t.judgeOrigins(docs, errs, t.h.Clock.Now().Sub(began))
	for i, d := range docs {
		if t.lost("load the payload", d.id, errs[i]) {
			why, _ := unavailable(errs[i], "it cannot be loaded now")
			d.unloaded, d.loadAfter = notLoaded+why, max(t.origin(d).after, t.patience(d, mostPatience))
		}
	}
}

// unavailable is what a source says of itself, why where it is about one payload alone; and how
// long it wants to be left alone.
func unavailable(err error, why string) (string, time.Duration) {
	var source *source.Unavailable
	if errors.As(err, &source) {
		return source.Problem, source.RetryAfter
	}
	return why, 0
}

// judgeOrigins finds the origins of which nothing could be loaded, or that ask for patience: the
// other documents of this turn keep their rows' writes, and the origin its peace.
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

// loadReference returns why the payload cannot be loaded now.
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

// notThere is a document that its origin does not show. One that was removed after this event has a
// delete on its way, which supersedes it. A replica that lags has not heard of a new one yet.
func (t *turn) notThere(d *document, fault *event.Invalid) {
	e, missing := d.newest(), source.MissingDeadLetter
	if f := t.h.Config.Sources[d.reference.Fetch].Fetch; f != nil {
		missing = f.Missing
	}
	switch waited := t.now() >= e.Admitted.Add(t.h.Config.Payload.MissingWait); {
	case !waited || missing == source.MissingWait:
		// The delete has a flight of its own, so nobody waits for these tries: they are few.
		d.unloaded = notLoaded + "it is not there: a delete may be on its way"
		d.loadAfter = t.patience(d, mostIfMissing)
	case missing == source.MissingDelete:
		// What is newer than this event supersedes the delete, as it would the event.
		e.Op, d.body = shard.Delete, nil
	default:
		d.fault, d.faultFor = fault.Detail(), deadletter.Payload
	}
}

// stale is a document of which a replica shows an older state than the event's.
func (t *turn) stale(d *document, fault *event.Invalid) {
	e := d.newest()
	sent := t.message(e).Sent
	if t.h.Config.Retry.Overdue(sent, d.reference.NotBefore, t.h.Clock.Now()) {
		d.fault, d.faultFor = fault.Detail(), deadletter.StaleSource
		return
	}
	d.unloaded = string(deadletter.StaleSource) + ": " + fault.Problem
	d.loadAfter = t.patience(d, mostPatience)
}

// patience is how long a document waits at least before it is loaded again: half of the time that
// it has waited already, so that nobody is asked often for long.
func (t *turn) patience(d *document, most time.Duration) time.Duration {
	return min(t.now().Sub(d.newest().Admitted)/2, most)
}

// tried reports whether a document of the flight could not be loaded when it was tried last.
func (t *turn) tried() bool {
	return slices.ContainsFunc(t.docs, func(d *document) bool { return strings.HasPrefix(d.row.LastError, notLoaded) })
}
