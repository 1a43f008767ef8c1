// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// Composition describes a change, for which Compose writes a message. The version of the change is
// the time, unless N is set.
type Composition struct {
	// Source and Collection limit the choice of form. If they are empty, any source that can
	// describe the change may be chosen, the default source first.
	Source     string           `json:"source,omitempty"`
	Collection shard.Collection `json:"collection,omitempty"`
	ID         string           `json:"id"`
	// Own says that the document is an example. Compose may then choose another id, ID with a number,
	// so that the document belongs to the stack's part. Compose also adds a value at each place that
	// the projection of the source names.
	Own     bool            `json:"own,omitempty"`
	Delete  bool            `json:"delete,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`    // the content of a put, a JSON object
	Deletes bool            `json:"deletes,omitempty"` // the source must support deletes
	// N numbers the version: a greater number is a newer version. If N is 0, the version comes from
	// At. If versions are times, the version is N milliseconds after At. A zero At means the present
	// time.
	N  uint32    `json:"n,omitempty"`
	At time.Time `json:"at,omitzero"`
}

// Forms lists the forms in which a message may be written, by the settings.
type Forms struct {
	Forms []Form `json:"forms"`
	Why   string `json:"why,omitempty"` // why a source has no form
}

// Form is the form of one source, for one collection.
type Form struct {
	Source     string `json:"source"`
	Kind       string `json:"kind"`
	Collection string `json:"collection"`
	Deletes    bool   `json:"deletes"` // its messages can describe deletes
	Refers     bool   `json:"refers"`  // its messages refer to an object that holds the content
	Own        bool   `json:"own"`     // the kind of the source decides which fields the document has
	Arrival    bool   `json:"arrival"` // the last arrival wins: there are no older versions
	// Data is content that fits the form, a JSON object.
	Data json.RawMessage `json:"data"`
	// Fresh is how many milliseconds a single change takes to reach the sink, if nothing delays it.
	Fresh int64 `json:"fresh_ms"`
}

// composer writes messages in the forms of the settings.
type composer struct {
	layout

	Sources *source.Set
	Clock   clock.Clock
}

// Forms lists the ways to write a message, those of the default source first.
func (o *composer) Forms(context.Context) (Forms, error) {
	ways, why := o.ways()
	all := Forms{Forms: []Form{}}
	if why != nil {
		all.Why = why.Error()
	}
	for _, w := range ways {
		settings := o.Config.Sources[w.Source]
		kind, _ := source.Lookup(settings.Kind)
		fresh := o.Config.For(w.Collection).Quiet + o.Config.Queues.Live.Window + time.Second
		all.Forms = append(all.Forms, Form{
			Source: w.Source, Kind: settings.Kind, Collection: w.Collection, Deletes: w.Deletes, Refers: w.Refers,
			Own: kind.OwnDocument, Arrival: settings.NoVersion == source.NoVersionArrival,
			Data:  json.RawMessage(selected(settings, cmp.Or(kind.Example.Change.Data, "{}"))),
			Fresh: fresh.Milliseconds(),
		})
	}
	return all, nil
}

// selected adds a value to an example at each place that the source's projection names and the
// example lacks. Without that value, the projection would select nothing of the example.
func selected(s source.Settings, data string) string {
	for _, text := range s.Projection {
		p, err := source.ParsePointer(text)
		if err == nil && len(p.Tokens) > 0 && !p.In(gjson.Parse(data)).Exists() {
			data = p.Put(data, `"example"`)
		}
	}
	return data
}

// Composed is a message, and how the stack decodes it.
type Composed struct {
	Source  string         `json:"source"`
	Key     shard.DocID    `json:"key"`
	Version string         `json:"version,omitempty"` // empty if its arrival time becomes the version
	Ref     string         `json:"ref,omitempty"`     // the object that must hold the content
	Fetched bool           `json:"fetched,omitempty"` // lull fetches the content from Ref, by the source's settings
	Message queue.Outgoing `json:"message"`
}

// Compose writes a message.
func (o *composer) Compose(_ context.Context, c Composition) (Composed, error) {
	if c.ID == "" {
		return Composed{}, inputf("id: name the document")
	}
	now := o.Clock.Now()
	ways, why := o.ways(string(c.Collection))
	ways = slices.DeleteFunc(ways, func(w feed.Writer) bool {
		return c.Source != "" && w.Source != c.Source || c.Collection != "" && w.Collection != string(c.Collection)
	})
	some := len(ways) > 0
	ways = slices.DeleteFunc(ways, func(w feed.Writer) bool { return c.Deletes && !w.Deletes })
	if some && len(ways) == 0 {
		why = errNoDeletes
	}
	at := cmp.Or(c.At, now)
	change := source.Change{ID: c.ID, Op: event.Put, Time: at, Data: string(c.Data)}
	if c.Delete {
		change.Op = event.Delete
	}
	for _, w := range ways {
		change.ID = c.ID
		if c.Own && !c.Delete {
			change.Data = selected(o.Config.Sources[w.Source], string(c.Data))
		}
		if class := o.Config.Sources[w.Source].Class; c.N > 0 && class == source.ClassTime {
			change.Version = source.VersionAt(class, at.Add(time.Duration(c.N)*time.Millisecond))
		} else if c.N > 0 {
			change.Version = source.NumberedVersion(class, c.N)
		}
		m, err := w.Write(change)
		for n := 2; err == nil && c.Own && !o.Config.Ours(m.Event.Doc); n++ {
			change.ID = c.ID + "-" + strconv.Itoa(n)
			m, err = w.Write(change)
		}
		if err != nil {
			why = errors.Join(why, err)
			continue
		}
		done := Composed{
			Source: w.Source, Key: m.Event.Doc, Version: m.Event.Version, Ref: m.Event.DataRef,
			Fetched: m.Event.Fetch != "",
			Message: m.Outgoing,
		}
		if o.Config.Sources[w.Source].NoVersion == source.NoVersionArrival && o.arrives(m, now) {
			done.Version = ""
		}
		return done, nil
	}
	return Composed{}, inputf("no source can write this change: %w", o.without(c, why))
}

// ways returns the ways to write a message, in the order of effort.
func (o *composer) ways(collections ...string) ([]feed.Writer, error) {
	ways, why := feed.Writers(o.Config, o.Sources, o.Clock.Now(), collections...)
	slices.SortStableFunc(ways, func(a, b feed.Writer) int { return cmp.Compare(o.effort(a), o.effort(b)) })
	return ways, why
}

// effort ranks the ways to write a message. The default source has the lowest rank. Sources whose
// messages refer to an object with the content have the highest ranks.
func (o *composer) effort(w feed.Writer) int {
	n := 0
	if w.Source != o.Config.DefaultSource {
		n++
	}
	if w.Refers {
		n += 2
	}
	return n
}

// arrives reports whether the version of a message is the time at which it is sent.
func (o *composer) arrives(m feed.Written, now time.Time) bool {
	later := queue.Message{Body: m.Body, Attributes: m.Attributes, Sent: now.Add(time.Hour)}
	return feed.RouteOf(o.Config, o.Sources, later).Events[0].Event.Key != m.Event.Key
}

var errNoDeletes = errors.New("none of them can describe a delete: a source of kind json needs json.operation and " +
	"json.deleteValues")

// without says why no source fits.
func (o *composer) without(c Composition, why error) error {
	if _, known := o.Config.Sources[c.Source]; c.Source != "" && !known {
		return fmt.Errorf("%s names nothing under sources", event.Quote(c.Source))
	}
	if why == nil {
		why = fmt.Errorf("no source writes to collection %s: see collections and sources.<name>.collection",
			event.Quote(string(c.Collection)))
	}
	return why
}
