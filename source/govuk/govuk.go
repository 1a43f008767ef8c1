// SPDX-License-Identifier: Apache-2.0

package govuk

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
)

type format struct {
	*source.Rules
	lists Lists
	paths [][]string // the segments of each override path; "*" matches any one segment
}

func newFormat(r *source.Rules) (source.Format, error) {
	o, err := source.OptionsOf[Options](r.Settings)
	if err != nil {
		return nil, err
	}
	s := &format{Rules: r, lists: o.Govuk.complete()}
	for _, path := range s.lists.OverridePaths {
		s.paths = append(s.paths, strings.Split(path, "/"))
	}
	return s, nil
}

func (s *format) Decode(b event.Body) (d source.Draft, bad *event.Invalid) {
	if bad = source.Object(b); bad != nil {
		return d, bad
	}
	m := event.Members(gjson.Parse(b.Text), "base_path", "content_id", "details", "document_type", "locale",
		"payload_version", "resyncrun", "withdrawn_notice")
	locale, bad := source.Optional("locale", m["locale"])
	if bad != nil {
		return d, bad
	}
	locale = cmp.Or(locale, "en")
	// The locale is checked before a delete: the index may have another locale of the same
	// content_id, which must stay.
	if !slices.Contains(s.lists.Locales, locale) {
		d.Skip = "locale " + shorten(locale)
		return d, nil
	}
	if d.Doc, bad = s.docID(m["content_id"], locale); bad != nil {
		return d, bad
	}
	kind := m["document_type"]
	if kind.Type != gjson.String || kind.Str == "" {
		return d, source.Invalid("document_type", "document_type is missing: it decides whether the document is indexed")
	}
	d.Op, d.Data = event.Put, b.Text
	d.Version = source.Version{Field: "payload_version", Value: m["payload_version"]}
	if s.deletes(m) {
		d.Op = event.Delete
	}
	if d.Resync = isBulk(b.RoutingKey) || isBulk(b.Type); d.Resync {
		d.Run, bad = resyncRun(b, m["resyncrun"])
	}
	return d, bad
}

// localeMark separates a content_id from its locale in a document's id.
const localeMark = ":"

// docID returns the id of a document: the content_id, for the first locale of the settings. Every
// other translation is a separate document, so its id also ends in the locale. Adding a locale at
// the end of the settings changes no existing id.
func (s *format) docID(contentID gjson.Result, locale string) (event.DocID, *event.Invalid) {
	id, bad := source.TextIdentity("content_id", contentID)
	if bad != nil {
		return "", bad
	}
	if len(s.lists.Locales) > 1 && strings.Contains(id, localeMark) {
		return "", source.Invalid("content_id",
			"content_id %s contains %s, which lull puts before the locale of a translation",
			event.Quote(id), localeMark)
	}
	if locale != s.lists.Locales[0] {
		id += localeMark + locale
	}
	return s.DocID("", "content_id", id)
}

// deletes reports whether the message removes its document from the index.
func (s *format) deletes(m map[string]gjson.Result) bool {
	kind := m["document_type"].Str
	switch kind {
	case "gone", "redirect", "substitute", "vanish":
		return true
	}
	return isPresent(m["withdrawn_notice"]) || linkOf(m) == "" || s.ignores(kind) && !s.overridden(m["base_path"].Str)
}

// ignores reports whether the type is on one of the ignore lists.
func (s *format) ignores(kind string) bool {
	return slices.Contains(s.lists.IgnoreTypes, kind) ||
		slices.ContainsFunc(s.lists.IgnorePrefixes, func(prefix string) bool { return strings.HasPrefix(kind, prefix) })
}

// overridden reports whether the page at a path is indexed even if its type is ignored.
func (s *format) overridden(path string) bool {
	if path == "" {
		return false
	}
	segments := strings.Split(path, "/")
	return slices.ContainsFunc(s.paths, func(pattern []string) bool {
		return slices.EqualFunc(pattern, segments, func(want, got string) bool {
			return want == got || want == "*" && got != ""
		})
	})
}

// isPresent reports whether a value is not blank, as the publishing system defines blank: null,
// false, white space, {} and [].
func isPresent(v gjson.Result) bool {
	switch v.Type {
	case gjson.Null, gjson.False:
		return false
	case gjson.String:
		return strings.TrimSpace(v.Str) != ""
	case gjson.JSON:
		for range v.ForEach {
			return true
		}
		return false
	}
	return true
}

// linkOf returns the link to a document: its path, or the URL of a page outside GOV.UK.
func linkOf(m map[string]gjson.Result) string {
	if path := m["base_path"]; path.Type == gjson.String && path.Str != "" {
		return path.Str
	}
	if url := event.Child(m["details"], "url"); url.Type == gjson.String {
		return url.Str
	}
	return ""
}

// isBulk reports whether a routing key or event type belongs to a full requeue. Such a key begins
// with "bulk.", or has ".bulk." after the name of the schema.
func isBulk(key string) bool {
	return strings.HasPrefix(key, "bulk.") || strings.Contains(key, ".bulk.")
}

// resyncRun returns the run of a bulk message. GOV.UK's messages have no run: a requeue gives every
// document a new version, so the run is not needed. A producer that sends an old version again
// names the run in the field resyncrun, or in a header inside the envelope. It must not be an
// attribute of the message, because the order key depends only on the body.
func resyncRun(b event.Body, run gjson.Result) (event.Run, *event.Invalid) {
	if run.Type == gjson.Null {
		if b.Run == "" {
			return event.Run{}, nil
		}
		run = gjson.Result{Type: gjson.String, Str: b.Run}
	}
	return source.ResyncRun(run)
}

// shorten makes a word of a message short enough for a log.
func shorten(s string) string {
	if len(s) <= 16 && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' }) {
		return s
	}
	return event.Quote(s)
}
