package source

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
)

// document is the projection of the configuration, or GOV.UK's default: what a reader searches for,
// never the whole message, whose fields are more than a search engine maps.
func (s *govuk) document(data string) ([]byte, *event.Fault) {
	if s.projection != nil {
		return s.projection.object(data)
	}
	root := gjson.Parse(data)
	if !root.IsObject() {
		return nil, contract("", "the body is %s: send a JSON object", typeName(root))
	}
	path, details := child(root, "base_path"), child(root, "details")
	doc := newMembers(len(data))
	doc.text("title", child(root, "title").Str)
	doc.text("description", description(child(root, "description")))
	doc.text("link", link(path, details))
	for _, name := range []string{"document_type", "locale", "public_updated_at"} {
		doc.text(name, child(root, name).Str)
	}
	doc.list("organisations", titles(child(child(root, "expanded_links"), "organisations")))
	doc.text("text", govukText(details))
	return doc.bytes(), nil
}

// govukText gathers what a page says: its body, parts and sections.
func govukText(details gjson.Result) string {
	var all []string
	add := func(t string) {
		if t != "" {
			all = append(all, t)
		}
	}
	add(richText(child(details, "body")))
	for _, name := range []string{"parts", "sections"} {
		list := child(details, name)
		if !list.IsArray() {
			continue
		}
		list.ForEach(func(_, part gjson.Result) bool {
			if part.IsObject() {
				add(collapse(child(part, "title").Str))
				add(richText(child(part, "body")))
			} else {
				add(richText(part))
			}
			return true
		})
	}
	return strings.Join(all, " ")
}

// description is plain text, except where it is a list as bodies are.
func description(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return richText(v)
}

// richText is the text of HTML, or of a list that offers the same content in several types, of
// which HTML is preferred: the other one is the source that it was made from.
func richText(v gjson.Result) string {
	switch {
	case v.Type == gjson.String:
		return textOf(v.Str)
	case !v.IsArray():
		return ""
	}
	var first, html string
	v.ForEach(func(_, offer gjson.Result) bool {
		content := child(offer, "content").Str
		if first == "" {
			first = content
		}
		if child(offer, "content_type").Str == "text/html" {
			html = content
		}
		return true
	})
	if html != "" {
		return textOf(html)
	}
	return textOf(first)
}

// titles are the titles of linked documents.
func titles(list gjson.Result) []string {
	var all []string
	if list.IsArray() {
		list.ForEach(func(_, linked gjson.Result) bool {
			if t := child(linked, "title").Str; t != "" {
				all = append(all, t)
			}
			return true
		})
	}
	return all
}

// members writes a JSON object. Members without a value are left out.
type members struct{ out []byte }

func newMembers(size int) *members { return &members{append(make([]byte, 0, size/2+64), '{')} }

func (m *members) text(name, value string) {
	if value != "" {
		m.name(name)
		m.out = gjson.AppendJSONString(m.out, value)
	}
}

func (m *members) list(name string, values []string) {
	if len(values) == 0 {
		return
	}
	m.name(name)
	for i, v := range values {
		m.out = append(m.out, "[,"[min(i, 1)])
		m.out = gjson.AppendJSONString(m.out, v)
	}
	m.out = append(m.out, ']')
}

func (m *members) name(name string) {
	if len(m.out) > 1 {
		m.out = append(m.out, ',')
	}
	m.out = append(gjson.AppendJSONString(m.out, name), ':')
}

func (m *members) bytes() []byte { return append(m.out, '}') }
