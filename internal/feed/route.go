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
	// Others are further sinks that events of the message belong to. Where the settings skip events that
	// belong elsewhere, the message goes to them too, as a topic would send it.
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
		if at := routeTo(cfg, sources.At(sink), sink, m); at.Events[0].Invalid == nil && at.Sink == sink {
			return at
		}
	}
	return r
}

func routeTo(cfg *config.Config, sources *source.Set, sink string, m queue.Message) Route {
	r := Route{Sink: sink, Lane: flight.Live, Events: sources.Decode(m)}
	for i, e := range r.Events {
		if e.Invalid != nil || e.Skip != "" {
			continue
		}
		own, _ := cfg.SinkFor(string(e.Event.Doc.Collection()))
		if i == 0 {
			r.Sink = own
		} else if cfg.Queues.Elsewhere == config.ElsewhereSkip && own != r.Sink && !slices.Contains(r.Others, own) {
			r.Others = append(r.Others, own)
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
		if m.Attributes == nil {
			m.Attributes = map[string]queue.Attribute{}
		}
		m.Attributes[name] = queue.Text(value)
	}
}
