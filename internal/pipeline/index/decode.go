package index

import (
	"context"
	"slices"
	"strings"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/queue"
)

// decoded is what a message of several events decodes to, or how that panicked.
type decoded struct {
	results []event.Result
	p       *fanout.Panic
	large   bool // it holds more than its message: its body was loaded
}

// own makes the results independent of the text that they are parts of, which may be much larger.
func (d *decoded) own(m *queue.Message) {
	bytes := 0
	for i := range d.results {
		bytes += len(d.results[i].Event.Data)
	}
	if d.large = bytes > len(m.Body); d.large {
		return
	}
	for i := range d.results {
		e := &d.results[i].Event
		e.Data, e.DataRef, e.Version = strings.Clone(e.Data), strings.Clone(e.DataRef), strings.Clone(e.Version)
	}
}

// decode takes apart the messages of several events of which some documents come next, each once: a
// message of hundreds of events would otherwise be decoded as often, and its body loaded as often.
func (t *turn) decode(ctx context.Context, part []*document) {
	var records []int
	for _, d := range part {
		r := d.newest().record
		if len(t.manifest.Records[r].Events) > 1 && t.decoded[r] == nil && !slices.Contains(records, r) {
			records = append(records, r)
		}
	}
	out := make([]decoded, len(records))
	t.h.Parallel.Each(maxParallel, len(records), func(i int) {
		m := &t.manifest.Records[records[i]].Message
		out[i].p = fanout.Catch(func() { out[i].results = t.h.Sources.DecodeContext(ctx, *m) })
		out[i].own(m)
	})
	for i, r := range records {
		t.decoded[r] = &out[i]
	}
}

// forget drops what is too large to be kept until the end of the turn, and what may be had later.
// It stays for as long as documents of it come next.
func (t *turn) forget(rest []*document) {
	next := rest[:min(maxParallel, len(rest))]
	for r, x := range t.decoded {
		missing := x.p == nil && x.results[0].Invalid != nil && x.results[0].Invalid.Transient()
		needed := slices.ContainsFunc(next, func(d *document) bool { return d.newest().record == r })
		if !needed && (x.large || missing) {
			delete(t.decoded, r)
		}
	}
}

// results are those of the message of an entry.
func (t *turn) results(ctx context.Context, e *held) []event.Result {
	d := t.decoded[e.record]
	switch {
	case d == nil:
		return t.h.Sources.DecodeContext(ctx, *t.message(e))
	case d.p != nil:
		panic(d.p)
	}
	return d.results
}
