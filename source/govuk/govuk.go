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
	paths [][]string // override paths by their segments; "*" stands for any one
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
	// Skip is judged before delete: another locale of the same content_id may be the one that is
	// indexed.
	if !slices.Contains(s.lists.Locales, locale) {
		d.Skip = "locale " + clip(locale)
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

// localeMark stands between a content_id and its locale in a document's id.
const localeMark = ":"

// docID is the content_id for the first locale of the settings. Every other translation is a
// separate document, so its id ends in its locale. A locale that is added at the end changes no id.
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

// deletes says whether the document must not be in the index.
func (s *format) deletes(m map[string]gjson.Result) bool {
	kind := m["document_type"].Str
	switch kind {
	case "gone", "redirect", "substitute", "vanish":
		return true
	}
	return present(m["withdrawn_notice"]) || link(m) == "" || s.ignores(kind) && !s.overridden(m["base_path"].Str)
}

// ignores reports whether the type is on one of the ignore lists.
func (s *format) ignores(kind string) bool {
	return slices.Contains(s.lists.IgnoreTypes, kind) ||
		slices.ContainsFunc(s.lists.IgnorePrefixes, func(prefix string) bool { return strings.HasPrefix(kind, prefix) })
}

// overridden reports whether the path is indexed whatever its type.
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

// present means not blank, as in the publishing system: null, false, "", {} and [] are blank.
func present(v gjson.Result) bool {
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

// link is where the document is: its path, or the URL of something outside GOV.UK.
func link(m map[string]gjson.Result) string {
	if path := m["base_path"]; path.Type == gjson.String && path.Str != "" {
		return path.Str
	}
	if url := event.Child(m["details"], "url"); url.Type == gjson.String {
		return url.Str
	}
	return ""
}

// isBulk reports whether a routing key or event type belongs to a full requeue: bulk.*, as it is or
// after the schema's name.
func isBulk(key string) bool {
	return strings.HasPrefix(key, "bulk.") || strings.Contains(key, ".bulk.")
}

// resyncRun is the run of a bulk message. GOV.UK has none: a requeue stamps one new version on
// every document, which orders it without a run. A producer that repeats a version gives the run in
// the field resyncrun or in a header inside the envelope; an attribute of the message would not do,
// because the order key comes from the body alone.
func resyncRun(b event.Body, run gjson.Result) (event.Run, *event.Invalid) {
	if run.Type == gjson.Null {
		if b.Run == "" {
			return event.Run{}, nil
		}
		run = gjson.Result{Type: gjson.String, Str: b.Run}
	}
	return source.ResyncRun(run)
}

// clip keeps a word of a message short enough for a log.
func clip(s string) string {
	if len(s) <= 16 && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' }) {
		return s
	}
	return event.Quote(s)
}
