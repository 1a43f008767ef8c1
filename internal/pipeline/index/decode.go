// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"slices"
	"strings"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/queue"
)

// decoded is the result of decoding a message with several events, or the panic of the decoder.
type decoded struct {
	results []event.Result
	p       *fanout.Panic
	large   bool // the events are larger than the message, because the message refers to a body that was loaded
}

// own copies the strings of the events. Otherwise each string would keep the whole text in memory
// that it is a part of, and that text may be much larger.
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

// decode decodes each message with several events only once. Otherwise a message with hundreds of
// events would be decoded, and its body loaded, hundreds of times.
func (s *preparer) decode(ctx context.Context, part []*document) {
	var records []int
	for _, d := range part {
		r := d.newest().record
		if len(s.manifest.Records[r].Events) > 1 && s.decoded[r] == nil && !slices.Contains(records, r) {
			records = append(records, r)
		}
	}
	out := make([]decoded, len(records))
	s.parallel.Each(maxParallel, len(records), func(i int) {
		m := &s.manifest.Records[records[i]].Message
		out[i].p = fanout.Catch(func() { out[i].results = s.sources.DecodeContext(ctx, *m) })
		out[i].own(m)
	})
	for i, r := range records {
		s.decoded[r] = &out[i]
	}
}

// forget deletes decoded results that are too large to keep until the end of the turn, and results
// that a later try may improve. It keeps a result if the documents of its message are among the
// next to be prepared.
func (s *preparer) forget(rest []*document) {
	next := rest[:min(maxParallel, len(rest))]
	for r, x := range s.decoded {
		missing := x.p == nil && x.results[0].Invalid != nil && x.results[0].Invalid.Transient()
		needed := slices.ContainsFunc(next, func(d *document) bool { return d.newest().record == r })
		if !needed && (x.large || missing) {
			delete(s.decoded, r)
		}
	}
}

// results returns the decoded events of the entry's message.
func (s *preparer) results(ctx context.Context, e *heldEntry) []event.Result {
	d := s.decoded[e.record]
	switch {
	case d == nil:
		return s.sources.DecodeContext(ctx, *s.message(e))
	case d.p != nil:
		panic(d.p)
	}
	return d.results
}
