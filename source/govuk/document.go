// SPDX-License-Identifier: Apache-2.0

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
		Title: m["title"].Str, Description: description(m["description"]), Link: linkOf(m),
		DocumentType: m["document_type"].Str, Locale: m["locale"].Str, UpdatedAt: m["public_updated_at"].Str,
		Organisations: titles(event.Child(m["expanded_links"], "organisations")), Text: pageText(m["details"]),
	})
	if err != nil {
		return nil, source.Invalid("", "the document cannot be written: %s", err)
	}
	return text, nil
}

// pageText gathers the text of a page: of its body, its parts and its sections.
func pageText(details gjson.Result) string {
	var all []string
	add := func(t string) {
		if t != "" {
			all = append(all, t)
		}
	}
	add(richText(event.Child(details, "body")))
	for _, name := range []string{"parts", "sections"} {
		for _, part := range arrayOrNone(event.Child(details, name)).ForEach {
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

// description returns the description of a page. It is a plain text, or a list like the list of a
// body.
func description(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return richText(v)
}

// richText returns the text of a value. The value is HTML, or a list that offers the same content
// in several media types. From a list, richText takes the HTML, because the other content is the
// markup from which the HTML was made.
func richText(v gjson.Result) string {
	if v.Type == gjson.String {
		return textOf(v.Str)
	}
	var first, html string
	for _, offer := range arrayOrNone(v).ForEach {
		content := event.Child(offer, "content").Str
		first = cmp.Or(first, content)
		if event.Child(offer, "content_type").Str == "text/html" {
			html = content
		}
	}
	return textOf(cmp.Or(html, first))
}

// arrayOrNone returns a value that is an array. For any other value, it returns nothing to read.
func arrayOrNone(v gjson.Result) gjson.Result {
	if !v.IsArray() {
		return gjson.Result{}
	}
	return v
}

// titles returns the titles of linked documents.
func titles(list gjson.Result) []string {
	var all []string
	for _, linked := range arrayOrNone(list).ForEach {
		if t := event.Child(linked, "title").Str; t != "" {
			all = append(all, t)
		}
	}
	return all
}
