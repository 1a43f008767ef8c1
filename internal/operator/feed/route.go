package feed

import (
	"maps"
	"slices"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/source"
)

// Route is the queue that a message belongs to, and what the message decodes to.
type Route struct {
	Sink   string
	Lane   flight.Lane
	Events []event.Result // never empty
	// Others are further sinks that get the message too, as a topic would send it: those of the first
	// event's collection, and those of other events where the settings skip what belongs elsewhere.
	Others []string
}

// RouteOf decodes a message as receive will. The collection of the first event chooses the sink:
// the default sink takes a message whose first event does not decode. A resync among the events
// chooses the bulk lane. Where the queue chooses the source, the message goes to the first sink
// whose source puts the event into a collection of the same sink.
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
		case e.Object != nil: // it goes where its lines belong
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
	return r
}

// Sinks are all sinks whose queues the message goes to.
func (r Route) Sinks() []string { return append([]string{r.Sink}, r.Others...) }

// Fault is the first event's fault that has one, nil where the message is sound. To publish what
// receive would make a dead letter helps nobody.
func (r Route) Fault() error {
	for _, e := range r.Events {
		if e.Invalid != nil {
			return e.Invalid
		}
	}
	return nil
}

// Mark gives a message the source that decodes it and the message group that it belongs to; an
// empty text marks nothing. What the message says itself goes first.
func Mark(m *queue.Outgoing, source, group string) {
	for name, value := range map[string]string{queue.AttrSource: source, queue.AttrGroup: group} {
		if _, said := m.Attributes[name]; said || value == "" {
			continue
		}
		m.Attributes = queue.With(m.Attributes, name, queue.Text(value))
	}
}
