package source

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/shard"
)

// govuk is the format of GOV.UK's publishing messages. A message is a put, a delete or a skip; the
// rules and their order are those of the publishing system's own consumers. Events have no time: a
// message names the time of publication only, which editors may set.
type govuk struct {
	*rules
	types, prefixes, locales []string
	paths                    [][]string // paths by their segments; "*" stands for any one
}

func newGovuk(r *rules, c config.Govuk) format {
	s := &govuk{
		rules: r, types: slices.Clone(c.IgnoreTypes), prefixes: slices.Clone(c.IgnorePrefixes),
		locales: slices.Clone(c.Locales),
	}
	for _, path := range c.OverridePaths {
		s.paths = append(s.paths, strings.Split(path, "/"))
	}
	return s
}

// govukFields are what decides about a message.
type govukFields struct {
	contentID, version, kind, locale, path, withdrawn, details, run gjson.Result
}

func readGovuk(text string) (g govukFields) {
	gjson.Parse(text).ForEach(func(name, v gjson.Result) bool {
		switch name.Str {
		case "content_id":
			g.contentID = v
		case "payload_version":
			g.version = v
		case "document_type":
			g.kind = v
		case "locale":
			g.locale = v
		case "base_path":
			g.path = v
		case "withdrawn_notice":
			g.withdrawn = v
		case "details":
			g.details = v
		case "resyncrun":
			g.run = v
		}
		return true
	})
	return g
}

func (s *govuk) decode(o origin, b event.Body) event.Result {
	if f := object(b); f != nil {
		return failed(f)
	}
	g := readGovuk(b.Text)
	locale, f := optional("locale", g.locale)
	if f != nil {
		return failed(f)
	}
	if locale == "" {
		locale = "en"
	}
	// Skip is judged before delete: another locale of the same content_id may be the one that is
	// indexed.
	if !slices.Contains(s.locales, locale) {
		return event.Result{Skip: "locale " + clip(locale)}
	}
	id, f := contentID(g.contentID)
	if f != nil {
		return failed(f)
	}
	d := draft{op: shard.Put, data: b.Text, version: version{"payload_version", g.version}}
	if d.doc, f = s.id("", "content_id", id); f != nil {
		return failed(f)
	}
	if g.kind.Type != gjson.String || g.kind.Str == "" {
		return with(d.doc, contract("document_type",
			"document_type is missing: it decides whether the document is indexed"))
	}
	if s.deletes(&g) {
		d.op = shard.Delete
	}
	if d.resync = isBulk(b.RoutingKey) || isBulk(b.Type); d.resync {
		if d.run, f = govukRun(b, g); f != nil {
			return with(d.doc, f)
		}
	}
	return s.finish(o, &d)
}

func contentID(v gjson.Result) (string, *event.Fault) {
	if v.Type != gjson.String && v.Type != gjson.Null {
		return "", contract("content_id", "content_id is %s: send it as text", typeName(v))
	}
	return identity("content_id", v)
}

// deletes says whether the document must not be in the index.
func (s *govuk) deletes(g *govukFields) bool {
	switch g.kind.Str {
	case "gone", "redirect", "substitute", "vanish":
		return true
	}
	return present(g.withdrawn) || link(g.path, g.details) == "" || s.ignores(g.kind.Str) && !s.overridden(g.path.Str)
}

// ignores reports whether the type is on one of the ignore lists.
func (s *govuk) ignores(kind string) bool {
	return slices.Contains(s.types, kind) ||
		slices.ContainsFunc(s.prefixes, func(prefix string) bool { return strings.HasPrefix(kind, prefix) })
}

// overridden reports whether the path is indexed whatever its type.
func (s *govuk) overridden(path string) bool {
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

// present means not blank, as it does in the publishing system: null, false, "", {} and [] are not.
func present(v gjson.Result) bool {
	switch v.Type {
	case gjson.Null, gjson.False:
		return false
	case gjson.String:
		return strings.TrimSpace(v.Str) != ""
	case gjson.JSON:
		some := false
		v.ForEach(func(_, _ gjson.Result) bool {
			some = true
			return false
		})
		return some
	}
	return true
}

// link is where the document is: its path, or the URL of something outside GOV.UK.
func link(path, details gjson.Result) string {
	if path.Type == gjson.String && path.Str != "" {
		return path.Str
	}
	if url := child(details, "url"); url.Type == gjson.String {
		return url.Str
	}
	return ""
}

// isBulk reports whether a routing key or event type belongs to a full requeue: bulk.*, as it is or
// after the schema's name.
func isBulk(key string) bool {
	return strings.HasPrefix(key, "bulk.") || strings.Contains(key, ".bulk.")
}

// govukRun is the resync run of a bulk message. GOV.UK has none: a requeue stamps one new version
// on every document, which orders it without a run. A producer that repeats a version gives the run
// in the field resyncrun or in a header inside the envelope; an attribute of the message would not
// do, because the order key comes from the body alone.
func govukRun(b event.Body, g govukFields) (shard.Run, *event.Fault) {
	if g.run.Type == gjson.Null {
		if b.Run == "" {
			return shard.Run{}, nil
		}
		return resyncRun(gjson.Result{Type: gjson.String, Str: b.Run})
	}
	return resyncRun(g.run)
}

// clip keeps a word of a message short enough for a log.
func clip(s string) string {
	if len(s) <= 16 && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' }) {
		return s
	}
	return event.Quote(s)
}
