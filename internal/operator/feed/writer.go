// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
)

// Writer writes changes of one collection as messages that one source of the settings decodes.
type Writer struct {
	Source, Collection string
	Deletes            bool // the source's messages can describe deletes
	Refers             bool // the source's messages refer to an object that contains the document

	config  *config.Config
	sources *source.Set
}

// Written is a message that describes a change, and its event.
type Written struct {
	queue.Outgoing
	Event event.Event
}

// Write writes a change of the writer's collection, as [source.Set.Encode] does.
func (w Writer) Write(c source.Change) (Written, error) {
	c.Collection = w.Collection
	sink := w.config.SinksFor(w.Collection)[0]
	e, err := w.sources.At(sink).Encode(w.Source, c)
	if err != nil {
		return Written{}, err
	}
	out := Written{queue.Outgoing{Body: e.Body, Attributes: e.Attributes}, e.Event}
	to := RouteOf(w.config, w.sources, queue.Message{Body: e.Body, Attributes: e.Attributes, Sent: c.Time})
	if fault := to.Fault(); fault != nil || to.Sink != sink || to.Events[0].Event.Doc != e.Event.Doc {
		return out, fmt.Errorf("sources.%s: a message for collection %s goes to sink %s instead of %s: correct its match",
			w.Source, w.Collection, to.Sink, sink)
	}
	return out, nil
}

// WriterOf returns the writer of one source for one collection. Write returns an error if the
// messages of the source cannot reach the collection.
func WriterOf(cfg *config.Config, sources *source.Set, name, collection string) Writer {
	return Writer{Source: name, Collection: collection, config: cfg, sources: sources}
}

// Writers returns a writer for each source and each collection that messages of the source can
// reach. The collections are those that the settings or also name. The error says, for each source
// without a writer, why no writer is possible. A caller can ignore the error if another source has
// a writer.
func Writers(cfg *config.Config, sources *source.Set, now time.Time, also ...string) (
	all []Writer, why error,
) {
	named := slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(also, maps.Keys(cfg.Collections)))))
	for _, name := range slices.Sorted(maps.Keys(cfg.Sources)) {
		own := cmp.Or(cfg.Sources[name].Collection, cfg.DefaultCollection)
		others := slices.DeleteFunc(slices.Clone(named), func(c string) bool { return c == own || c == "" })
		var first error
		reached := false
		for _, collection := range append([]string{own}, others...) {
			w := Writer{Source: name, Collection: collection, config: cfg, sources: sources}
			probe := source.Change{ID: "probe", Op: event.Put, Time: now, Data: `{"title":"probe"}`}
			put, err := w.Write(probe)
			if err != nil {
				if first == nil {
					first = err
				}
				continue
			}
			probe.Op = event.Delete
			_, err = w.Write(probe)
			w.Deletes, w.Refers, reached = err == nil, put.Event.DataRef != "", true
			all = append(all, w)
		}
		if !reached {
			why = errors.Join(why, first)
		}
	}
	return all, why
}
