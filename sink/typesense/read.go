// SPDX-License-Identifier: Apache-2.0

package typesense

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Ping asks the server whether it is ready, and checks the API key.
func (s *Sink) Ping(ctx context.Context) error {
	var health struct {
		OK *bool `json:"ok"`
	}
	err := s.client.Read(s.client.Do(ctx, http.MethodGet, "/health", "", nil, maxError), &health)
	switch {
	case err != nil:
		return fmt.Errorf("ping: %w", err)
	case health.OK == nil:
		return s.client.Odd()
	case !*health.OK:
		return errors.New("ping: typesense: the server reports that it is unhealthy")
	}
	index, _ := s.names.Index("lull")
	if len(s.Collections) > 0 {
		index, _ = s.names.Index(s.Collections[0])
	}
	// A key that allows only documents may still read a document, even one that does not exist.
	_, err = s.ask(ctx, "ping", documentPath(index, "lull-ping"), nil)
	return err
}

// ask sends a GET request and decodes the answer. found is false if the answer is 404.
func (s *Sink) ask(ctx context.Context, doing, path string, into any) (found bool, err error) {
	err = s.client.Ask(ctx, http.MethodGet, path, nil, into)
	switch {
	case exchange.Status(err) == http.StatusNotFound:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s: %w", doing, err)
	}
	return true, nil
}

// kept contains the members of a document in Typesense that lull reads.
type kept struct{ ID, Original string }

// UnmarshalJSON reads members by their exact names. encoding/json would also accept other members
// whose names differ only in upper and lower case.
func (k *kept) UnmarshalJSON(document []byte) error {
	k.ID, k.Original = gjson.GetBytes(document, "id").String(), gjson.GetBytes(document, fieldOriginal).String()
	return nil
}

// stored returns the document, or false if lull did not write it.
func (k kept) stored(c event.Collection) (sink.Stored, bool, error) {
	if k.Original == "" {
		return sink.Stored{}, false, nil
	}
	m, plain, ok, err := sink.Unseal([]byte(k.Original))
	return m.Stored(event.DocID(string(c)+"#"+k.ID), plain), ok, err
}

// Get returns the document. It returns false if the document is missing or lull did not write the
// document.
func (s *Sink) Get(ctx context.Context, doc event.DocID) (sink.Stored, bool, error) {
	index, ok := s.names.Index(doc.Collection())
	if !ok {
		return sink.Stored{}, false, nil
	}
	var k kept
	if found, err := s.ask(ctx, "get document", documentPath(index, doc.ID()), &k); err != nil || !found {
		return sink.Stored{}, false, err
	}
	return k.stored(doc.Collection())
}

// Found is Get without the document: Typesense answers a write when a search finds it.
func (s *Sink) Found(ctx context.Context, doc event.DocID) (sink.Stored, bool, error) {
	d, found, err := s.Get(ctx, doc)
	d.Document = nil
	return d, found, err
}

// pageSize is how many documents All keeps in memory at a time.
const pageSize = 100

// All calls f for each document that lull wrote, sorted by collection and id. Typesense cannot sort
// by id. So All reads all ids of a collection into memory, sorts them, and then reads each
// document.
func (s *Sink) All(ctx context.Context, f func(sink.Stored) error) error {
	collections, err := s.collections(ctx)
	if err != nil {
		return err
	}
	for _, c := range collections {
		ids, err := s.ids(ctx, c)
		if err != nil {
			return err
		}
		for page := range slices.Chunk(ids, pageSize) {
			docs, found, errs := make([]sink.Stored, len(page)), make([]bool, len(page)), make([]error, len(page))
			fanout.Runner(nil).Each(parallel, len(page), func(i int) {
				docs[i], found[i], errs[i] = s.Get(ctx, event.DocID(string(c)+"#"+page[i]))
			})
			if err := cmp.Or(ctx.Err(), errors.Join(errs...)); err != nil {
				return err
			}
			for i, d := range docs {
				if !found[i] {
					continue
				}
				if err := f(d); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// collections returns the collections that exist in Typesense, sorted. A collection behind an alias
// counts under the name of the alias. Without permission to list collections, collections returns
// the known ones.
func (s *Sink) collections(ctx context.Context) ([]event.Collection, error) {
	var list []struct {
		Name string `json:"name"`
	}
	var named struct {
		Aliases []struct {
			Name string `json:"name"`
			Of   string `json:"collection_name"`
		} `json:"aliases"`
	}
	_, err := s.ask(ctx, "list collections", "/collections?exclude_fields=fields", &list)
	if errors.Is(err, sink.ErrDenied) && len(s.Collections) > 0 {
		return slices.Sorted(slices.Values(s.Collections)), nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := s.ask(ctx, "list aliases", "/aliases", &named); err != nil && !errors.Is(err, sink.ErrDenied) {
		return nil, err
	}
	is := map[string]bool{} // the names in use, of collections and of aliases
	for _, each := range list {
		is[each.Name] = true
	}
	for _, alias := range named.Aliases {
		if _, ok := s.names.Collection(alias.Name); ok && is[alias.Of] {
			is[alias.Of], is[alias.Name] = false, true
		}
	}
	var found []event.Collection
	for name, used := range is {
		if c, ok := s.names.Collection(name); ok && used {
			found = append(found, c)
		}
	}
	slices.Sort(found)
	return found, nil
}

// ids returns the ids of all documents of a collection, sorted.
func (s *Sink) ids(ctx context.Context, c event.Collection) (ids []string, err error) {
	index, _ := s.names.Index(c)
	path := collectionPath(index) + "/export?include_fields=id"
	a := s.client.Do(ctx, http.MethodGet, path, "", nil, exchange.MaxAnswer)
	switch {
	case a.Err == nil && a.Status == http.StatusNotFound:
		return nil, nil
	case !a.OK():
		return nil, fmt.Errorf("list documents of %s: %w", index, s.client.Fault(a))
	}
	for line := range bytes.Lines(a.Body) {
		var k kept
		if err := json.Unmarshal(line, &k); err != nil {
			return nil, s.client.Odd()
		}
		ids = append(ids, k.ID)
	}
	slices.Sort(ids)
	return ids, nil
}

// maxPage is the largest number of documents in one page of a search.
const maxPage = 250

// Search finds documents that contain every word of the text, best first. If a collection has one
// field for all words and the query names a field, Search checks that field in each result.
func (s *Sink) Search(ctx context.Context, q sink.Query) ([]sink.Stored, error) {
	whole, beginning := q.Parts()
	asked := strings.Join(append(split(whole), split(beginning)...), " ")
	if q.Limit <= 0 || asked == "" {
		return nil, nil
	}
	collections, err := s.collections(ctx)
	if err != nil {
		return nil, err
	}
	type hit struct {
		sink.Stored
		score int64
	}
	var hits []hit
	for _, c := range collections {
		if q.Collection != "" && q.Collection != c {
			continue
		}
		index, _ := s.names.Index(c)
		by, inText, err := s.searched(ctx, index, q.Field)
		if err != nil {
			return nil, err
		}
		if by == "" {
			continue
		}
		path := collectionPath(index) + "/search?" + url.Values{
			"q": {asked}, "query_by": {by}, "prefix": {fmt.Sprint(beginning != "")}, "num_typos": {"0"},
			"drop_tokens_threshold": {"0"}, "typo_tokens_threshold": {"0"}, "include_fields": {"id,_lull"},
			"highlight_fields": {"none"}, "per_page": {fmt.Sprint(maxPage)},
		}.Encode()
		for page, n := 1, maxPage; n == maxPage; page++ {
			var answer struct {
				Hits []struct {
					Document kept  `json:"document"`
					Score    int64 `json:"text_match"`
				} `json:"hits"`
			}
			if _, err := s.ask(ctx, "search "+index, fmt.Sprint(path, "&page=", page), &answer); err != nil {
				return nil, err
			}
			n = len(answer.Hits)
			for _, h := range answer.Hits {
				d, ok, err := h.Document.stored(c)
				if err != nil {
					return nil, err
				}
				if ok && (q.Field == "" || !inText || within(d.Document, q)) {
					hits = append(hits, hit{d, h.Score})
				}
			}
			if len(hits) >= q.Limit {
				break
			}
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	var found []sink.Stored
	for _, h := range hits[:min(len(hits), q.Limit)] {
		found = append(found, h.Stored)
	}
	return found, nil
}

// searched returns the fields of a collection in which a query must search. inText says that the
// result is the field with all words.
func (s *Sink) searched(ctx context.Context, index, of string) (by string, inText bool, err error) {
	var schema struct {
		Fields []field `json:"fields"`
	}
	if _, err := s.ask(ctx, "read the schema of "+index, "/collections/"+url.PathEscape(index), &schema); err != nil {
		return "", false, err
	}
	var names []string
	for _, f := range schema.Fields {
		switch {
		case f.Name == fieldText && f.Index:
			return fieldText, true, nil
		case strings.HasPrefix(f.Type, "string") && f.Index && (of == "" || of == f.Name):
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, ","), false, nil
}

// split splits a text into words as Typesense does if no symbols are indexed. A query must not
// contain symbols, because Typesense reads some of them as operators.
func split(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}

// within reports whether the document has all words of the query in the field of the query.
func within(document []byte, q sink.Query) bool {
	var at any
	if json.Unmarshal(document, &at) != nil {
		return false
	}
	for _, name := range strings.Split(q.Field, ".") {
		members, ok := at.(map[string]any)
		if !ok {
			return false
		}
		at = members[name]
	}
	part, _ := json.Marshal(at)
	words := split(text(part))
	whole, beginning := q.Parts()
	for _, w := range split(whole) {
		if !slices.Contains(words, w) {
			return false
		}
	}
	for _, b := range split(beginning) {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, b) }) {
			return false
		}
	}
	return true
}
