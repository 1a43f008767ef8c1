// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/shard"
)

// InRun reads the resync run from a header inside an envelope. A format uses InRun if its own
// messages cannot name a run. [Wrapped] makes such an envelope.
func (d *Draft) InRun(b event.Body) (bad *event.Invalid) {
	if b.Run == "" {
		return nil
	}
	d.Resync = true
	d.Run, bad = ResyncRun(gjson.Result{Type: gjson.String, Str: b.Run})
	return bad
}

// Wrapped puts a body into an envelope of RabbitMQ. The headers of the envelope name a resync run,
// and a routing key as of a full requeue.
func Wrapped(body, run string) string {
	return `{"basicProperties":{"headers":{"resyncrun":` + Quoted(run) + `,"routing_key":"bulk.resync"}},"data":"` +
		base64.StdEncoding.EncodeToString([]byte(body)) + `"}`
}

// Resync returns a message that is part of a resync run and otherwise means the same. If collection
// is not empty, the new message also names that collection. An error says why that is impossible. A
// message that lull would skip is returned unchanged.
func (s *Set) Resync(m event.Message, run event.Run, collection string) (event.Message, error) {
	src, bad := s.choose(m)
	if bad != nil {
		return m, bad
	}
	before := s.Decode(m)
	skipped := true
	for _, r := range before {
		if r.Invalid != nil {
			return m, r.Invalid
		}
		skipped = skipped && r.Skip != ""
	}
	if skipped {
		return m, nil
	}
	body, err := s.markBody(src, m, run.String(), collection)
	if err != nil {
		return m, err
	}
	for _, rule := range append([]Match{{}}, src.rules.Settings.Match...) {
		of := m
		of.Body = rule.wrap(body, Change{Time: m.Sent}, s.depth)
		if s.belongsToRun(src, of, before, run, collection) {
			return of, nil
		}
	}
	return m, fmt.Errorf("sources.%s: messages of kind %s cannot say that they belong to a resync", src.rules.Name,
		src.rules.Settings.Kind)
}

// markBody returns the body, marked as part of the run.
func (s *Set) markBody(src *source, m event.Message, run, collection string) (string, error) {
	body, settings := m.Body, src.rules.Settings
	inner := event.Unwrapper{Depth: s.depth}.Unwrap(nil, m.Body, event.MetaOf(m.Attributes))
	if len(inner) == 1 && inner[0].Shape == event.Plain && inner[0].Text != "" {
		body = inner[0].Text
	}
	kind, _ := Lookup(settings.Kind)
	if kind.Resync != nil {
		marked, err := kind.Resync(settings, body, run, collection)
		if err == nil && len(inner) == 1 && inner[0].Position != "" {
			marked = s.wrapAgain(m.Body, marked, inner[0].Meta)
		}
		return marked, err
	}
	if err := (Change{Collection: collection}).Here(settings); err != nil {
		return "", errors.New("--collection: " + err.Error())
	}
	return Wrapped(m.Body, run), nil
}

// belongsToRun reports whether a message has the same events as before, as part of the run.
func (s *Set) belongsToRun(src *source, m event.Message, before []event.Result, run shard.Run, collection string) bool {
	if chosen, bad := s.choose(m); bad != nil || chosen != src {
		return false
	}
	after := s.Decode(m)
	if len(after) != len(before) {
		return false
	}
	for i, r := range after {
		was, is := before[i].Event, r.Event
		parts, _ := is.Key.Parts()
		switch {
		case before[i].Skip != "" && r.Skip != "":
		case r.Invalid != nil, r.Skip != "", !is.Resync, parts.Run != run, is.Doc.ID() != was.Doc.ID(), is.Op != was.Op,
			collection == "" && is.Doc != was.Doc,
			collection != "" && string(is.Doc.Collection()) != collection:
			return false
		}
	}
	return true
}
