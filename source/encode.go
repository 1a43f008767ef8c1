// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Encoded is a change that was written as a message.
type Encoded struct {
	Body       string
	Attributes map[string]event.Attribute
	// Event is the decoded message. If Event has a DataRef, the caller must store the content
	// there.
	Event event.Event
}

// Encode writes a change as a message that goes to a source under the settings. It tries every form
// that the settings allow: without an envelope, with the attribute that names the source, or in the
// envelopes that a rule requires. The change needs a time, which is also the time at which the
// message is sent. If the version or the bucket is empty, Encode chooses one. An error says which
// setting prevents the message.
func (s *Set) Encode(name string, c Change) (Encoded, error) {
	src := s.sources[name]
	if src == nil {
		return Encoded{}, fmt.Errorf("%s is not a source: use one of %s", event.Quote(name), s.names)
	}
	c.Version = cmp.Or(c.Version, VersionAt(src.rules.Settings.Class, c.Time))
	var why error
	for _, rule := range append([]Match{{}}, src.rules.Settings.Match...) {
		for _, placed := range src.rules.inPlaces(rule, c) {
			e, err := s.encode(src, rule, placed)
			// A delete may name any object. So Encode requires a place in which a put is also
			// allowed.
			if err == nil && c.Op == event.Delete {
				placed.Op, placed.Data = event.Put, ""
				_, err = s.encode(src, rule, placed)
			}
			if err == nil {
				return e, nil
			}
			if why == nil || errors.Is(why, errElsewhere) {
				why = fmt.Errorf("sources.%s: %w", name, err)
			}
		}
	}
	return Encoded{}, why
}

// inPlaces returns the change once for each place of payload.allow in which its content may be,
// folder by folder. Formats whose messages refer to their content need these places.
func (r *Rules) inPlaces(rule Match, c Change) []Change {
	if c.Bucket != "" {
		return []Change{c}
	}
	c.Bucket = rule.Bucket
	all := []Change{c}
	for _, place := range r.places {
		if rule.Bucket != "" && rule.Bucket != place.Bucket {
			continue
		}
		all[0].Bucket = cmp.Or(all[0].Bucket, place.Bucket)
		c.Bucket = place.Bucket
		for folder := place.Prefix; ; { // the kind may remove a part of the folder from keys
			in := c
			in.ID = folder + c.ID
			all = append(all, in)
			if folder == "" {
				break
			}
			_, folder, _ = strings.Cut(folder, "/")
		}
	}
	return all
}

// errElsewhere says that the rules give the message to another source, so Encode tries the next
// rule.
var errElsewhere = errors.New("the match rules select another source for the message")

// encode writes a change as a message for one rule.
func (s *Set) encode(src *source, rule Match, c Change) (e Encoded, err error) {
	kind, _ := Lookup(src.rules.Settings.Kind)
	if kind.Example.Write == nil {
		return e, fmt.Errorf("lull cannot write messages of kind %s: the kind has no example", kind.Name)
	}
	if e.Body, err = kind.Example.Write(src.rules.Settings, c); err != nil {
		return e, err
	}
	if settings := src.rules.Settings; settings.NoVersion == NoVersionPosition && !rule.piped() {
		e.Body = record(rule.Stream, anyName, c, e.Body)
	}
	e.Body = rule.wrap(e.Body, c, s.depth)
	if rule.Named {
		e.Attributes = map[string]event.Attribute{queue.AttrSource: queue.Text(src.rules.Name)}
	}
	m := event.Message{Body: e.Body, Attributes: e.Attributes, Sent: c.Time}
	if chosen, bad := s.choose(m); bad != nil || chosen != src {
		return e, errElsewhere
	}
	results := s.Decode(m)
	r := results[0]
	switch {
	case r.Invalid != nil:
		return e, r.Invalid
	case len(results) != 1 || r.Skip != "" || r.Event.Op != c.Op ||
		c.Collection != "" && string(r.Event.Doc.Collection()) != c.Collection:
		return e, fmt.Errorf("a %s of a document of collection %s is read as %s: the settings do not distinguish the two",
			c.Op,
			event.Quote(c.Collection), described(r))
	}
	e.Event = r.Event
	return e, nil
}

func described(r event.Result) string {
	if r.Skip != "" {
		return "skipped, " + r.Skip
	}
	return fmt.Sprintf("a %s of %s", r.Event.Op, event.Quote(string(r.Event.Doc)))
}

// wrap adds the envelopes that the rule requires and the body lacks.
func (m Match) wrap(body string, c Change, depth int) string {
	is, sent := event.OriginOf(body, depth), Quoted(c.Time.UTC().Format(time.RFC3339))
	switch {
	case m.piped():
		body = m.pipe(is, body, c)
	case m.Bus == "" && m.DetailType == "":
	case is.Bucket != "":
		body = bridged(body, sent)
	default:
		body = bus(cmp.Or(m.Bus, anyName), cmp.Or(m.DetailType, anyName), sent, body)
	}
	if m.fromSNS() {
		body = `{"Type":"Notification","MessageId":"22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324","TopicArn":` + Quoted(m.Topic) +
			`,"Message":` + Quoted(body) + `,"Timestamp":` + sent + `}`
	}
	return body
}

// bus returns an event in the form in which EventBridge sends it to a queue.
func bus(from, detailType, sent, detail string) string {
	return `{"version":"0","id":"6a7e8feb-b491-4cf7-a9f1-bf3703467718","detail-type":` + Quoted(detailType) +
		`,"source":` + Quoted(from) + `,"account":"111122223333","time":` + sent +
		`,"region":"eu-west-1","resources":[],"detail":` + detail + `}`
}

// bridged turns a notification of S3 into the form that EventBridge sends, with an unescaped key.
func bridged(body, sent string) string {
	record := event.Child(gjson.Parse(body), "Records", "0")
	object := event.Child(record, "s3", "object")
	detailType := "Object Created"
	if strings.HasPrefix(event.Child(record, "eventName").Str, "ObjectRemoved") {
		detailType = "Object Deleted"
	}
	key, _ := url.QueryUnescape(event.Child(object, "key").Str) // no source reads a key that cannot be unescaped
	return bus("aws.s3", detailType, sent, `{"version":"0","bucket":{"name":`+
		event.Child(record, "s3", "bucket", "name").Raw+`},"object":{"key":`+Quoted(key)+`,"sequencer":`+
		event.Child(object, "sequencer").Raw+`}}`)
}

// anyName is used for names that a rule does not require.
const anyName = "example"
