package vertex

import (
	"bytes"
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
	"github.com/lullhq/lull/internal/exchange"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/sink"
)

const (
	// maxAnswer bounds what is read of an answer. The largest are pages of documents.
	maxAnswer = 512 << 20
	pageSize  = 200
	// maxHits is the most results that a search may ask for.
	maxHits = 100
)

var errAnswer = errors.New("vertex: the answer is not what Discovery Engine answers: check the url")

// list asks for a page of a data store's documents.
func (s *Sink) list(ctx context.Context, name string, size int, token string) exchange.Answer {
	query := url.Values{"pageSize": {strconv.Itoa(size)}}
	if token != "" {
		query.Set("pageToken", token)
	}
	return s.client.Do(ctx, http.MethodGet, documents(name)+"?"+query.Encode(), "", nil, maxAnswer)
}

// Ping asks for a document of each data store that is known.
func (s *Sink) Ping(ctx context.Context) error {
	for _, c := range s.Collections {
		name, ok := s.names.Index(c)
		if !ok {
			continue
		}
		a := s.list(ctx, name, 1, "")
		var page struct {
			Documents []json.RawMessage `json:"documents"`
		}
		switch {
		case !a.OK():
			return requestError("ping data store "+name, a)
		case json.Unmarshal(a.Body, &page) != nil:
			return fmt.Errorf("ping: %w", errAnswer)
		}
		s.there.Store(name, true)
	}
	return nil
}

// get returns a document, whoever wrote it; false where it is missing.
func (s *Sink) get(ctx context.Context, doc event.DocID) (b body, found bool, err error) {
	name, ok := s.names.Index(doc.Collection())
	if !ok {
		return b, false, nil
	}
	a := s.client.Do(ctx, http.MethodGet, documents(name)+"/"+documentID(doc.ID()), "", nil, maxAnswer)
	switch {
	case a.Status == http.StatusNotFound && faultOf(a).Status == statusNotFound:
		return b, false, nil
	case !a.OK():
		return b, false, requestError("get document", a)
	case json.Unmarshal(a.Body, &b) != nil:
		return b, false, fmt.Errorf("get document: %w", errAnswer)
	}
	return b, true, nil
}

// Get returns the document as it is now; false also where lull did not write it.
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
		stored, _, _ := opened(doc.Collection(), b) // what cannot be read has its Document only
		stored.Doc = doc
		return stored
	})
}

// Marks returns what lull wrote beside documents, one request each.
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

// each asks for documents, several at the same time.
func (s *Sink) each(ctx context.Context, docs []event.DocID,
	f func(event.DocID, body) sink.Stored,
) ([]sink.Stored, error) {
	out, errs := make([]sink.Stored, len(docs)), make([]error, len(docs))
	if len(docs) > 0 {
		fanout.Runner(nil).Each(s.Parallel, len(docs), func(i int) {
			b, found, err := s.get(ctx, docs[i])
			if errs[i] = err; found {
				out[i] = f(docs[i], b)
			}
		})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
	}
	return out, nil
}

// All calls f for each document that lull wrote, by collection and id.
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

// Range calls f for the documents of a collection from an id on, lull's and others.
func (s *Sink) Range(ctx context.Context, c event.Collection, after string, f func(sink.Stored) error) error {
	return s.sorted(ctx, c, after, func(stored sink.Stored, _ bool) error { return f(stored) })
}

// sorted calls f for the documents of a collection by id. The engine lists them in an order of its
// own, so all of them are read first, into a file that is gone afterwards.
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
		_ = file.Close() // nothing of it is needed
		_ = os.Remove(file.Name())
	}()
	type place struct {
		id       string
		at, size int64
	}
	var places []place
	end := int64(0)
	for token, more := "", true; more; more = token != "" {
		var page struct {
			Documents []body `json:"documents"`
			Next      string `json:"nextPageToken"`
		}
		switch a := s.list(ctx, name, pageSize, token); {
		case a.Status == http.StatusNotFound:
			return nil
		case !a.OK():
			return requestError("read all of "+string(c), a)
		case json.Unmarshal(a.Body, &page) != nil:
			return fmt.Errorf("read all of %s: %w", c, errAnswer)
		}
		token = page.Next
		for _, b := range page.Documents {
			stored, _, _ := opened(c, b) // what cannot be read has an id, too
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
			stored = sink.Stored{Doc: stored.Doc, Document: stored.Document} // somebody has written into it
		}
		if err := f(stored, ours); err != nil {
			return err
		}
	}
	return nil
}

// Search asks the engine's default serving configuration of each data store. What a word is, and
// whether every one must be found, is the engine's own. It cannot search one field.
func (s *Sink) Search(ctx context.Context, q sink.Query) ([]sink.Stored, error) {
	whole, beginning := q.Parts()
	text := strings.TrimSpace(whole + " " + beginning)
	switch {
	case q.Field != "":
		return nil, errors.New("search: vertex: cannot search one field: leave the field out")
	case q.Limit <= 0 || text == "":
		return nil, nil
	}
	request, err := json.Marshal(map[string]any{"query": text, "pageSize": min(q.Limit, maxHits)})
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	var found []sink.Stored
	for _, c := range s.Collections {
		name, ok := s.names.Index(c)
		if !ok || q.Collection != "" && c != q.Collection {
			continue
		}
		a := s.client.Do(ctx, http.MethodPost, store(name)+"/servingConfigs/default_search:search", typeJSON,
			bytes.Clone(request), maxAnswer)
		var answer struct {
			Results []struct {
				Document body `json:"document"`
			} `json:"results"`
		}
		switch {
		case !a.OK():
			return nil, requestError("search", a)
		case json.Unmarshal(a.Body, &answer) != nil:
			return nil, fmt.Errorf("search: %w", errAnswer)
		}
		for _, r := range answer.Results {
			if stored, ours, err := opened(c, r.Document); ours && err == nil {
				found = append(found, stored)
			}
		}
	}
	return found[:min(len(found), q.Limit)], nil
}
