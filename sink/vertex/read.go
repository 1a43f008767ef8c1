// SPDX-License-Identifier: Apache-2.0

package vertex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

const (
	pageSize = 200
	// maxHits is the largest number of results for which a search may ask.
	maxHits = 100
)

// page is one page of the documents of a data store.
type page struct {
	Documents []body `json:"documents"`
	Next      string `json:"nextPageToken"`
}

// list reads one page of the documents of a data store.
func (s *Sink) list(ctx context.Context, name string, size int, token string) exchange.Answer {
	query := url.Values{"pageSize": {strconv.Itoa(size)}}
	if token != "" {
		query.Set("pageToken", token)
	}
	return s.client.Do(ctx, http.MethodGet, documents(name)+"?"+query.Encode(), "", nil, exchange.MaxAnswer)
}

// Ping reads at most one document of each known data store.
func (s *Sink) Ping(ctx context.Context) error {
	for _, c := range s.Collections {
		name, ok := s.names.Index(c)
		if !ok {
			continue
		}
		var page page
		if err := s.client.Read(s.list(ctx, name, 1, ""), &page); err != nil {
			return fmt.Errorf("ping data store %s: %w", name, err)
		}
		s.there.Store(name, true)
	}
	return nil
}

// get returns a document, even if lull did not write it, or false if the document is missing.
func (s *Sink) get(ctx context.Context, doc event.DocID) (b body, found bool, err error) {
	name, ok := s.names.Index(doc.Collection())
	if !ok {
		return b, false, nil
	}
	a := s.client.Do(ctx, http.MethodGet, documents(name)+"/"+documentID(doc.ID()), "", nil, exchange.MaxAnswer)
	if a.Status == http.StatusNotFound && faultOf(a).Status == statusNotFound {
		return b, false, nil
	}
	if err := s.client.Read(a, &b); err != nil {
		return b, false, fmt.Errorf("get document: %w", err)
	}
	return b, true, nil
}

// Get returns the current document, or false if it is missing or lull did not write it.
func (s *Sink) Get(ctx context.Context, doc event.DocID) (sink.Stored, bool, error) {
	b, found, err := s.get(ctx, doc)
	if err != nil || !found {
		return sink.Stored{}, false, err
	}
	stored, ours, err := opened(doc.Collection(), b)
	if err != nil || !ours {
		return sink.Stored{}, false, err
	}
	return stored, true, nil
}

// Documents returns documents with their content, one request each.
func (s *Sink) Documents(ctx context.Context, docs []event.DocID) ([]sink.Stored, error) {
	return s.each(ctx, docs, func(doc event.DocID, b body) sink.Stored {
		stored, _, _ := opened(doc.Collection(), b) // a document whose mark cannot be read has only its Document
		stored.Doc = doc
		return stored
	})
}

// Marks returns the metadata that lull wrote with the documents. Marks sends one request for each
// document.
func (s *Sink) Marks(ctx context.Context, docs []event.DocID) ([]sink.Stored, error) {
	return s.each(ctx, docs, func(doc event.DocID, b body) sink.Stored {
		stored, ours, err := opened(doc.Collection(), b)
		switch {
		case err != nil:
			return sink.Stored{Doc: doc}
		case !ours:
			return sink.Stored{}
		}
		stored.Document = nil
		return stored
	})
}

// each reads several documents at the same time, and converts each with f.
func (s *Sink) each(ctx context.Context, docs []event.DocID,
	f func(event.DocID, body) sink.Stored,
) ([]sink.Stored, error) {
	out := make([]sink.Stored, len(docs))
	err := fanout.Runner(nil).Try(s.Parallel, len(docs), func(i int) error {
		b, found, err := s.get(ctx, docs[i])
		if found {
			out[i] = f(docs[i], b)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// All calls f for each document that lull wrote, sorted by collection and id.
func (s *Sink) All(ctx context.Context, f func(sink.Stored) error) error {
	for _, c := range slices.Sorted(slices.Values(s.Collections)) {
		err := s.sorted(ctx, c, "", func(stored sink.Stored, ours bool) error {
			if !ours {
				return nil
			}
			return f(stored)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Range calls f for the documents of a collection from the first id after the given one, even if
// lull did not write them.
func (s *Sink) Range(ctx context.Context, c event.Collection, after string, f func(sink.Stored) error) error {
	return s.sorted(ctx, c, after, func(stored sink.Stored, _ bool) error { return f(stored) })
}

// sorted calls f for the documents of a collection in the order of their ids. The engine lists
// documents in another order. So sorted first writes all documents to a temporary file, and removes
// the file at the end.
func (s *Sink) sorted(ctx context.Context, c event.Collection, after string, f func(sink.Stored, bool) error) error {
	name, ok := s.names.Index(c)
	if !ok {
		return nil
	}
	file, err := os.CreateTemp("", "lull-vertex-")
	if err != nil {
		return fmt.Errorf("sort the documents of %s: %w", c, err)
	}
	defer func() {
		_ = file.Close() // the file is removed, so an error does not matter
		_ = os.Remove(file.Name())
	}()
	type place struct {
		id       string
		at, size int64
	}
	var places []place
	end := int64(0)
	for token, more := "", true; more; more = token != "" {
		var page page
		switch err := s.client.Read(s.list(ctx, name, pageSize, token), &page); {
		case exchange.Status(err) == http.StatusNotFound:
			return nil
		case err != nil:
			return fmt.Errorf("read all of %s: %w", c, err)
		}
		token = page.Next
		for _, b := range page.Documents {
			stored, _, _ := opened(c, b) // a document whose mark cannot be read also has an id
			if stored.Doc.ID() <= after {
				continue
			}
			text, err := json.Marshal(b)
			if err == nil {
				_, err = file.Write(text)
			}
			if err != nil {
				return fmt.Errorf("sort the documents of %s: %w", c, err)
			}
			places = append(places, place{stored.Doc.ID(), end, int64(len(text))})
			end += int64(len(text))
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.id, b.id) })
	for _, p := range places {
		var b body
		if err := json.NewDecoder(io.NewSectionReader(file, p.at, p.size)).Decode(&b); err != nil {
			return fmt.Errorf("sort the documents of %s: %w", c, err)
		}
		stored, ours, err := opened(c, b)
		if err != nil {
			stored = sink.Stored{Doc: stored.Doc, Document: stored.Document} // another program changed the document
		}
		if err := f(stored, ours); err != nil {
			return err
		}
	}
	return nil
}

// Search uses the engine's default serving configuration of each data store. The engine decides
// what a word is, and whether a document must contain every word. The engine cannot search in one
// field.
func (s *Sink) Search(ctx context.Context, q sink.Query) ([]sink.Stored, error) {
	whole, beginning := q.Parts()
	text := strings.TrimSpace(whole + " " + beginning)
	switch {
	case q.Field != "":
		return nil, errors.New("search: vertex: cannot search a single field: remove the field from the query")
	case q.Limit <= 0 || text == "":
		return nil, nil
	}
	request := map[string]any{"query": text, "pageSize": min(q.Limit, maxHits)}
	var found []sink.Stored
	for _, c := range s.Collections {
		name, ok := s.names.Index(c)
		if !ok || q.Collection != "" && c != q.Collection {
			continue
		}
		var answer struct {
			Results []struct {
				Document body `json:"document"`
			} `json:"results"`
		}
		path := store(name) + "/servingConfigs/default_search:search"
		if err := s.client.Ask(ctx, http.MethodPost, path, request, &answer); err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		for _, r := range answer.Results {
			if stored, ours, err := opened(c, r.Document); ours && err == nil {
				found = append(found, stored)
			}
		}
	}
	return found[:min(len(found), q.Limit)], nil
}
