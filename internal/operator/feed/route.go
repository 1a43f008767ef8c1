// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"maps"
	"slices"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
)

// Route is the queue that a message belongs to, and its events.
type Route struct {
	Sink   string
	Lane   flight.Lane
	Events []event.Result // never empty
	// Others are the other sinks that get the message, as if a topic delivered it. They are the other
	// sinks of the first event's collection. If the settings skip events that belong elsewhere, Others
	// also has the sinks of the other events.
	Others []string
	// Part is the part of the documents, see [PartOf]. Split says that they belong to several parts,
	// or is nil.
	Part  int
	Split error
}

// RouteOf decodes a message as receive will, and returns its queue. The collection of the first
// event decides the sink. If the first event cannot be decoded, the message goes to the default
// sink. If one of the events belongs to a resync, the message goes to the bulk lane. Queues may
// have their own sources. Then the message goes to the first sink whose source decodes the first
// event into a collection of that sink.
func RouteOf(cfg *config.Config, sources *source.Set, m queue.Message) Route {
	r := routeTo(cfg, sources, cfg.DefaultSink, m)
	if !sources.BySink() {
		return r
	}
	for _, sink := range append([]string{cfg.DefaultSink}, slices.Sorted(maps.Keys(cfg.Sinks))...) {
		at := routeTo(cfg, sources.At(sink), sink, m)
		if at.Events[0].Invalid == nil && slices.Contains(at.Sinks(), sink) {
			return routeTo(cfg, sources.At(at.Sink), at.Sink, m)
		}
	}
	return r
}

func routeTo(cfg *config.Config, sources *source.Set, sink string, m queue.Message) Route {
	r := Route{Sink: sink, Lane: flight.Live, Events: sources.Decode(m)}
	for i, e := range r.Events {
		collection := string(e.Event.Doc.Collection())
		switch {
		case e.Object != nil: // the message belongs to the collection of the object's lines
			collection = cfg.CollectionFor(e.Object.Source)
		case e.Invalid != nil || e.Skip != "":
			continue
		}
		own := cfg.SinksFor(collection)
		if i == 0 {
			r.Sink = own[0]
		}
		for _, sink := range own {
			if (i == 0 || cfg.Queues.Elsewhere == config.ElsewhereSkip) && !slices.Contains(r.Sinks(), sink) {
				r.Others = append(r.Others, sink)
			}
		}
		if e.Event.Resync {
			r.Lane = flight.Bulk
		}
	}
	r.Part, r.Split = PartOf(cfg, r.Events)
	return r
}

// Sinks returns all sinks to whose queues the message is sent.
func (r Route) Sinks() []string { return append([]string{r.Sink}, r.Others...) }

// Fault returns the error of the first invalid event, or nil. Such an event would only become a
// dead letter.
func (r Route) Fault() error {
	for _, e := range r.Events {
		if e.Invalid != nil {
			return e.Invalid
		}
	}
	return nil
}

// Mark gives a message the source that decodes it and the message group that it belongs to; an
// empty text marks nothing. Attributes that the message already has stay.
func Mark(m *queue.Outgoing, source, group string) {
	for name, value := range map[string]string{queue.AttrSource: source, queue.AttrGroup: group} {
		if _, said := m.Attributes[name]; said || value == "" {
			continue
		}
		m.Attributes = queue.With(m.Attributes, name, queue.Text(value))
	}
}
