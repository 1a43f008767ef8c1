package govuk

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
)

// page holds the fields that people search for. The whole message has more fields than a search
// engine maps.
type page struct {
	Title         string   `json:"title,omitempty"`
	Description   string   `json:"description,omitempty"`
	Link          string   `json:"link,omitempty"`
	DocumentType  string   `json:"document_type,omitempty"`
	Locale        string   `json:"locale,omitempty"`
	UpdatedAt     string   `json:"public_updated_at,omitempty"`
	Organisations []string `json:"organisations,omitempty"`
	Text          string   `json:"text,omitempty"`
}

// Document makes a page.
func (s *format) Document(data string) ([]byte, *event.Invalid) {
	root := gjson.Parse(data)
	if !root.IsObject() {
		return nil, source.Invalid("", "the body is %s: send a JSON object", source.TypeName(root))
	}
	m := event.Members(root, "base_path", "description", "details", "document_type", "expanded_links", "locale",
		"public_updated_at", "title")
	text, err := json.Marshal(page{
		Title: m["title"].Str, Description: description(m["description"]), Link: link(m),
		DocumentType: m["document_type"].Str, Locale: m["locale"].Str, UpdatedAt: m["public_updated_at"].Str,
		Organisations: titles(event.Child(m["expanded_links"], "organisations")), Text: pageText(m["details"]),
	})
	if err != nil {
		return nil, source.Invalid("", "the document cannot be written: %s", err)
	}
	return text, nil
}

// pageText gathers what a page says: its body, parts and sections.
func pageText(details gjson.Result) string {
	var all []string
	add := func(t string) {
		if t != "" {
			all = append(all, t)
		}
	}
	add(richText(event.Child(details, "body")))
	for _, name := range []string{"parts", "sections"} {
		for _, part := range array(event.Child(details, name)).ForEach {
			if part.IsObject() {
				add(collapse(event.Child(part, "title").Str))
				add(richText(event.Child(part, "body")))
			} else {
				add(richText(part))
			}
		}
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
	if v.Type == gjson.String {
		return textOf(v.Str)
	}
	var first, html string
	for _, offer := range array(v).ForEach {
		content := event.Child(offer, "content").Str
		first = cmp.Or(first, content)
		if event.Child(offer, "content_type").Str == "text/html" {
			html = content
		}
	}
	return textOf(cmp.Or(html, first))
}

// array is a value that is an array; of any other one nothing is read.
func array(v gjson.Result) gjson.Result {
	if !v.IsArray() {
		return gjson.Result{}
	}
	return v
}

// titles are the titles of linked documents.
func titles(list gjson.Result) []string {
	var all []string
	for _, linked := range array(list).ForEach {
		if t := event.Child(linked, "title").Str; t != "" {
			all = append(all, t)
		}
	}
	return all
}
