// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/shard"
)

// Rules are the settings of one source. They have the functions with which a format makes document
// ids, checks references and makes a projection. Most formats embed Rules, and so have the method
// [Rules.Document].
type Rules struct {
	// Name is the source's name in the settings.
	Name string
	// Settings are complete: the class is set, and Options has the type of the kind's options.
	Settings Settings

	class      event.Class
	greatest   shard.Version // the greatest allowed version; the zero Version allows every version
	collection event.Collection
	places     []Place
	hosts      []string
	projection *tree // nil if the document is the whole payload
}

// Place is a place in S3 that a reference may point to: the keys of a bucket in the folder Prefix.
// If Prefix is empty, all keys of the bucket are allowed. The prefix "a" does not allow keys in
// "ab/".
type Place struct{ Bucket, Prefix string }

func (p Place) holds(bucket, key string) bool {
	rest, under := strings.CutPrefix(key, p.Prefix)
	return p.Bucket == bucket && under &&
		(p.Prefix == "" || strings.HasSuffix(p.Prefix, "/") || strings.HasPrefix(rest, "/"))
}

func newRules(c Config, name string) (*Rules, error) {
	s := c.Sources[name]
	class, err := shard.ParseClass(string(s.Class))
	if err != nil {
		return nil, fmt.Errorf("read its class: %w", err)
	}
	var greatest shard.Version
	if s.MaxVersion != "" {
		if greatest, err = parse(class, "maxVersion", s.MaxVersion); err != nil {
			return nil, fmt.Errorf("read its maxVersion: %w", err)
		}
	}
	projection, err := newTree(s.Projection)
	if err != nil {
		return nil, fmt.Errorf("read its projection: %w", err)
	}
	return &Rules{
		Name: name, Settings: s, class: class, greatest: greatest, collection: event.Collection(s.Collection),
		places: c.Places(name),
		hosts:  c.Hosts, projection: projection,
	}, nil
}

// Document returns the parts of the payload that the source's projection names. Without a
// projection, it returns the whole payload.
func (r *Rules) Document(data string) ([]byte, *event.Invalid) { return r.projection.object(data) }

// Keeps reports whether a member of the payload, or a part of the member, belongs to the document.
func (r *Rules) Keeps(member string) bool {
	t := r.projection
	return t == nil || t.leaf || t.find(member) >= 0
}

// DocID makes a document's id from a collection and a text. An empty collection means the source's
// own collection. The argument field is the name of the text in problems.
func (r *Rules) DocID(collection, field, text string) (event.DocID, *event.Invalid) {
	in := cmp.Or(event.Collection(collection), r.collection)
	if err := in.Validate(); err != nil {
		return "", Invalid("collection", "%s", err)
	}
	if open := r.Settings.Collections; len(open) > 0 && !slices.Contains(open, string(in)) {
		return "", Invalid("collection",
			"%s is not allowed for source %s: add it to collections, and to sources.%s.collections if that is set",
			event.Quote(string(in)), r.Name, r.Name)
	}
	switch {
	case text == "":
		return "", Invalid(field, "%s is empty: send the document's id, 1 to %d bytes", field, event.MaxIDBytes)
	case len(text) > event.MaxIDBytes:
		return "", Invalid(field, "the document's id has %d bytes, at most %d are allowed", len(text),
			event.MaxIDBytes)
	}
	doc, err := shard.NewDocID(in, text)
	if err != nil {
		return "", Invalid(field, "%s", err)
	}
	return doc, nil
}

// Allowed returns nil if events of the source may refer to an object in S3. Otherwise it returns
// the reason.
func (r *Rules) Allowed(field, bucket, key string) *event.Invalid {
	for _, place := range r.places {
		if place.holds(bucket, key) {
			return nil
		}
	}
	return Invalid(field,
		"source %[2]s may not read the object's path in bucket %[1]s: list bucket and prefix under payload.allow",
		event.Quote(bucket), r.Name)
}

// Reference returns nil if events of the source may refer to ref. Otherwise it returns the reason.
func (r *Rules) Reference(field, ref string) *event.Invalid {
	if place, ok := strings.CutPrefix(ref, "s3://"); ok {
		bucket, key, _ := strings.Cut(place, "/")
		if bucket == "" || key == "" {
			return Invalid(field, "%s is incomplete: use s3://bucket/key", event.Quote(ref))
		}
		return r.Allowed(field, bucket, key)
	}
	u, err := url.Parse(ref)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return Invalid(field, "%s is not a reference: use s3://bucket/key or https://host/path", event.Quote(ref))
	}
	if u.User != nil || u.Port() != "" && u.Port() != "443" {
		return Invalid(field, "a reference contains a user or a port: use https://host/path")
	}
	if !slices.Contains(r.hosts, strings.ToLower(u.Hostname())) {
		return Invalid(field, "references to host %s are not allowed: list it under payload.httpHosts",
			event.Quote(u.Hostname()))
	}
	return nil
}
