// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
)

// origins holds the places from which a turn loads payloads.
type origins struct {
	*invocation
	payloads Payloads
	fetcher  Fetcher
	by       map[string]*origin // the key is the setting fetch of a reference
	cautious bool               // the last try to load a document of this flight failed
}

// origin is what this turn knows of one place from which it loads payloads by reference. The place
// is a source with the setting fetch, or stands for all places that messages refer to.
type origin struct {
	away     string        // why this turn cannot load from the origin, "" if it can
	after    time.Duration // how long the origin asked lull to wait
	answered bool          // the origin has answered in this turn
	took     time.Duration // how long the last loads took together
}

// origin returns the origin of the document's payload.
func (s *origins) origin(d *document) *origin {
	o := s.by[d.reference.Fetch]
	if o == nil {
		o = &origin{}
		s.by[d.reference.Fetch] = o
	}
	return o
}

// mayLoad reports whether a document may be claimed now: there must be time to load its payload and
// to start its write. An origin that failed before first gets a request for only one document.
func (s *origins) mayLoad(d *document, probes map[*origin]bool) bool {
	o := s.origin(d)
	if left := s.remaining() - sinkMargin; o.took > left/2 || o.took*3/2+leastWrite >= left {
		return false
	}
	if !s.cautious || o.answered {
		return true
	}
	asked := probes[o]
	probes[o] = true
	return !asked
}

// judgeOrigins marks an origin as away if it loaded nothing or asked for a wait. This turn then
// claims no other document whose payload comes from that origin.
func (s *origins) judgeOrigins(docs []*document, errs []error, took time.Duration) {
	answered := map[*origin]bool{}
	for i, d := range docs {
		o := s.origin(d)
		o.took = took
		if errs[i] == nil {
			answered[o], o.answered = true, true
		}
	}
	for i, err := range errs {
		if err == nil {
			continue
		}
		o := s.origin(docs[i])
		why, after := unavailable(err, "payloads cannot be loaded now")
		if o.after = max(o.after, after); !answered[o] || o.after > 0 {
			o.away = cmp.Or(o.away, why)
		}
	}
}

// unavailable returns the problem that a source reports about itself, and how long the source asks
// lull to wait. If the error is about one payload only, unavailable returns the given why.
func unavailable(err error, why string) (string, time.Duration) {
	var source *source.Unavailable
	if errors.As(err, &source) {
		return source.Problem, source.RetryAfter
	}
	return why, 0
}

func (s *origins) loadFrom(ctx context.Context, ev *event.Event) ([]byte, error) {
	if ev.Fetch != "" {
		return s.fetcher.Fetch(ctx, ev.Fetch, ev.DataRef)
	}
	return s.payloads.Load(ctx, ev.DataRef)
}

// lastLoadFailed reports whether the last try to load a document of the flight failed.
func lastLoadFailed(docs []*document) bool {
	return slices.ContainsFunc(docs, func(d *document) bool { return strings.HasPrefix(d.row.LastError, notLoaded) })
}
