// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
	"github.com/lullhq/lull/sink"
)

// searchRoutes returns the requests of the view Search.
//
//	GET /console/search?q=&field=&collection=&prefix=&limit=   excerpts of the documents that were found
func (c *console) searchRoutes() routes {
	return routes{"GET /console/search": answered(reader, c.search)}
}

// hit is a document that was found, with its version and fence, and with excerpts around the words.
type hit struct {
	Key       string    `json:"key"`
	Version   string    `json:"version"`
	Fence     int64     `json:"fence"`
	Indexed   time.Time `json:"indexed_at,omitzero"`
	Bytes     int       `json:"bytes"`
	Title     string    `json:"title,omitempty"`
	Fragments []excerpt `json:"fragments"`
}

// excerpt is a part of a field's text, split at the words that were found.
type excerpt struct {
	Field string `json:"field"`
	Parts []part `json:"parts"`
}

type part struct {
	Text string `json:"text"`
	Hit  bool   `json:"hit,omitempty"`
}

// SearchOf reads a search from a request. The request may ask for at most this many hits. If it
// does not say how many, the limit of the search is 0.
func SearchOf(r *http.Request, most int) (operate.Search, error) {
	limit, err := limitOf(r, most)
	return operate.Search{
		Text: r.FormValue("q"), Field: r.FormValue("field"), Collection: shard.Collection(r.FormValue("collection")),
		Prefix: r.FormValue("prefix") == "true", Limit: limit,
	}, err
}

func (c *console) search(r *http.Request) (any, error) {
	q, err := SearchOf(r, 100)
	if err != nil {
		return nil, err
	}
	q.Limit = cmp.Or(q.Limit, 25)
	found, err := c.API.Search(r.Context(), q)
	out := struct {
		Hits   []hit    `json:"hits"`
		More   bool     `json:"more"`
		Notes  []string `json:"notes,omitempty"`
		Fields []string `json:"fields"` // the fields of the found documents, from which a user can choose
	}{Hits: []hit{}, More: found.More, Fields: []string{}}
	for _, note := range found.Notes {
		out.Notes = append(out.Notes, terminal.Line(note))
	}
	x := newExcerpts(q)
	for _, d := range found.Hits {
		out.Hits = append(out.Hits, x.hit(d))
	}
	out.Fields = append(out.Fields, x.fields...)
	slices.Sort(out.Fields)
	return out, err
}

// Bounds of the excerpts that a page shows of a document, and of the values that are searched for
// them.
const (
	maxFragments  = 3
	maxValues     = 2000     // the most values of a document that are searched
	maxValue      = 64 << 10 // the most bytes of a value
	maxFields     = 100      // the most fields that a user can choose from
	excerptMargin = 60       // characters before and after the first word
)

// excerpts finds the words of a query in documents. It only finds words with the same beginning,
// although a search engine also finds other forms of a word.
type excerpts struct {
	field     string
	words     []string // in lower case
	beginning string
	fields    []string
}

func newExcerpts(q operate.Search) *excerpts {
	whole, beginning := sink.Query{Text: q.Text, Prefix: q.Prefix}.Parts()
	return &excerpts{
		field: q.Field, words: word.FindAllString(strings.ToLower(whole), -1), beginning: strings.ToLower(beginning),
	}
}

var word = regexp.MustCompile(`[\pL\p{Nd}\pM]+`)

// titles are the fields that usually hold the name of a document.
var titles = []string{"title", "name", "headline", "label", "subject"}

func (x *excerpts) hit(d operate.Document) hit {
	h := hit{
		Key: d.Collection + "#" + d.ID, Version: d.Version, Fence: d.Fence, Indexed: d.Indexed, Bytes: len(d.Document),
		Fragments: []excerpt{},
	}
	var first excerpt
	left := maxValues
	var walk func(v gjson.Result, path string) bool
	walk = func(v gjson.Result, path string) (more bool) {
		more = true
		v.ForEach(func(name, value gjson.Result) bool {
			p := path
			if v.IsObject() {
				p = strings.TrimPrefix(path+"."+name.Str, ".")
			}
			if left--; left < 0 {
				more = false
				return false
			}
			if value.IsObject() || value.IsArray() {
				more = walk(value, p)
				return more
			}
			x.note(p)
			text := clipped(value.String(), maxValue)
			if h.Title == "" && slices.Contains(titles, p) {
				h.Title = clipped(text, 200)
			}
			if x.field != "" && p != x.field {
				return true
			}
			parts, found := x.mark(text)
			if e := (excerpt{p, parts}); found && len(h.Fragments) < maxFragments {
				h.Fragments = append(h.Fragments, e)
			} else if first.Field == "" && value.Type == gjson.String {
				first = e
			}
			return true
		})
		return more
	}
	if doc := gjson.ParseBytes(d.Document); doc.IsObject() {
		walk(doc, "")
	}
	if len(h.Fragments) == 0 && first.Field != "" { // the engine found a form of the word that excerpts does not
		h.Fragments = append(h.Fragments, first)
	}
	return h
}

// note remembers the name of a field.
func (x *excerpts) note(path string) {
	if len(x.fields) < maxFields && len(path) <= 200 && !slices.Contains(x.fields, path) {
		x.fields = append(x.fields, path)
	}
}

// mark returns the part of a text around the first word that was found. If no word was found, it
// returns the beginning of the text.
func (x *excerpts) mark(text string) (parts []part, found bool) {
	type span struct{ from, to int }
	var hits []span
	for _, at := range word.FindAllStringIndex(text, -1) {
		if x.wanted(strings.ToLower(text[at[0]:at[1]])) {
			hits = append(hits, span{at[0], at[1]})
		}
	}
	from, to := 0, forward(text, 0, 2*excerptMargin)
	if len(hits) > 0 {
		from, to = backward(text, hits[0].from, excerptMargin), forward(text, hits[0].to, 2*excerptMargin)
	}
	add := func(text string, hit bool) {
		if text != "" {
			parts = append(parts, part{text, hit})
		}
	}
	if from > 0 {
		add("…", false)
	}
	at := from
	for _, h := range hits {
		if h.to > to {
			break
		}
		add(text[at:h.from], false)
		add(text[h.from:h.to], true)
		at = h.to
	}
	add(text[at:to], false)
	if to < len(text) {
		add("…", false)
	}
	return parts, len(hits) > 0
}

// wanted reports whether a word is similar to a word of the query: one of the two may be the
// beginning of the other.
func (x *excerpts) wanted(text string) bool {
	if x.beginning != "" && strings.HasPrefix(text, x.beginning) {
		return true
	}
	return slices.ContainsFunc(x.words, func(w string) bool {
		return text == w || len(w) > 3 && strings.HasPrefix(text, w) || len(text) > 3 && strings.HasPrefix(w, text)
	})
}

// forward and backward return the position n characters after or before at.
func forward(text string, at, n int) int {
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

func backward(text string, at, n int) int {
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return at
}

// clipped returns the beginning of a text, without cutting a character.
func clipped(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	for bytes > 0 && !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return text[:bytes]
}
