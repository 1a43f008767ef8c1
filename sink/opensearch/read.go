// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// object is a short name for the type of request bodies.
type object = map[string]any

// writtenByLull is a query for the documents that lull wrote.
var writtenByLull = object{"exists": object{"field": sink.MetaField + ".fence"}}

// Ping sends GET /, with credentials.
func (s *Sink) Ping(ctx context.Context) error {
	if err := s.greet(ctx); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}

func (s *Sink) greet(ctx context.Context) error {
	var greeting struct {
		Version struct {
			Number string `json:"number"`
			Flavor string `json:"build_flavor"`
		} `json:"version"`
	}
	a := s.client.Do(ctx, http.MethodGet, "/", "", nil, exchange.MaxAnswer)
	other := s.Product.check(a.Header)
	switch {
	case s.Serverless && a.Status == http.StatusNotFound:
		return nil // a serverless collection answers GET / with 404 if the client has access
	case s.Product == OpenSearch && other != nil, // another product answered, whatever the status is
		// an Elasticsearch without the module that answers GET /
		s.Product == Elasticsearch && a.Status == http.StatusMethodNotAllowed:
		return other
	}
	if err := s.client.Read(a, &greeting); err != nil {
		return err
	}
	if greeting.Version.Number == "" {
		return s.client.Odd()
	}
	if greeting.Version.Flavor == "serverless" {
		return fmt.Errorf("%w: a serverless project of Elasticsearch is not supported: use a deployment of version 8 or 9",
			ErrProduct)
	}
	return nil
}

// severalIndices is part of OpenSearch's text if an alias names several indices, so that a read by
// id is not possible.
const severalIndices = "has more than one index associated with it"

// Get returns the current document, even before the next refresh. Get returns false if the document
// or the index is missing, or if lull did not write the document.
func (s *Sink) Get(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error) {
	sources, err := s.sources(ctx, []shard.DocID{doc}, true)
	if err != nil || sources[0] == nil {
		return sink.Stored{}, false, err
	}
	return unseal(doc, sources[0])
}

// Marks returns the current marks of documents, even before the next refresh.
func (s *Sink) Marks(ctx context.Context, docs []shard.DocID) ([]sink.Stored, error) {
	sources, err := s.sources(ctx, docs, []string{sink.MetaField})
	if err != nil {
		return nil, err
	}
	out := make([]sink.Stored, len(docs))
	for i, source := range sources {
		if source == nil {
			continue
		}
		stored, ok, err := unseal(docs[i], source)
		switch {
		case err != nil:
			out[i].Doc = docs[i]
		case ok:
			stored.Document = nil
			out[i] = stored
		}
	}
	return out, nil
}

// Found returns the mark of a document as a search finds it. That is the state of the last refresh.
// If an alias names several indices, Found returns the oldest mark.
func (s *Sink) Found(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error) {
	index, ok := s.names.Index(doc.Collection())
	if !ok {
		return sink.Stored{}, false, nil
	}
	h, err := s.searchIn(ctx, pathOf(index), object{
		"query": object{"ids": object{"values": []string{doc.ID()}}}, "_source": []string{sink.MetaField},
		"track_total_hits": false,
	})
	if err != nil {
		return sink.Stored{}, false, fmt.Errorf("search for document: %w", err)
	}
	var oldest sink.Stored
	for _, hit := range h.Hits.Hits {
		found, ok, err := unseal(doc, hit.Source)
		switch {
		case err != nil:
			return sink.Stored{}, false, fmt.Errorf("search for document: %w", err)
		case ok && (oldest.Doc == "" || found.Fence < oldest.Fence):
			found.Document = nil
			oldest = found
		}
	}
	return oldest, oldest.Doc != "", nil
}

// sources returns the bodies of documents, or only the given parts of them. The body of a missing
// document is nil.
func (s *Sink) sources(ctx context.Context, docs []shard.DocID, parts any) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, len(docs))
	var asked []object
	var at []int
	for i, doc := range docs {
		if index, ok := s.names.Index(doc.Collection()); ok {
			asked = append(asked, object{"_index": index, "_id": doc.ID()})
			at = append(at, i)
		}
	}
	if len(asked) == 0 {
		return out, nil
	}
	// _mget takes the ids in the body. An id in the path could be changed by a proxy that cleans
	// paths.
	found, err := s.mget(ctx, asked, parts)
	if err != nil {
		return nil, fmt.Errorf("get document: %w", err)
	}
	for i, d := range found {
		if d.Error != nil && strings.Contains(d.Error.Reason, severalIndices) {
			return nil, fmt.Errorf("get document: the alias %s names several indices: let it name one",
				asked[i]["_index"])
		}
		if d.Error != nil && d.Error.Type != "index_not_found_exception" {
			err := fmt.Errorf("get document: %s", d.Error.reason())
			if d.Error.Type == "security_exception" {
				err = errors.Join(err, sink.ErrDenied)
			}
			return nil, err
		}
		if d.Found {
			out[at[i]] = append(json.RawMessage{}, d.Source...) // not nil, even if the index does not store bodies
		}
	}
	return out, nil
}

// withVectors is a path that makes Elasticsearch return vectors inside their documents. Since 9.2,
// Elasticsearch stores vectors separately, unless the index has another setting (see Template).
// Before 9.2, Elasticsearch refuses this parameter.
const withVectors = "/_mget?_source=true&_source_exclude_vectors=false"

// copied is one document in an answer of _mget.
type copied struct {
	ID      string          `json:"_id"`
	Version int64           `json:"_version"`
	Found   bool            `json:"found"`
	Source  json.RawMessage `json:"_source"`
	Error   *fault          `json:"error"`
}

// mget reads the current documents by id, in the order of docs. parts selects the fields to return;
// true means the whole document.
func (s *Sink) mget(ctx context.Context, docs []object, parts any) ([]copied, error) {
	var answer struct {
		Docs []copied `json:"docs"`
	}
	whole := parts == true && s.Product == Elasticsearch && !s.vectorsInside.Load()
	path, body := withVectors, object{"docs": docs}
	if !whole {
		path = "/_mget"
		for _, d := range docs {
			d["_source"] = parts
		}
	}
	err := s.client.Ask(ctx, http.MethodPost, path, body, &answer)
	var refused *Error
	switch {
	case whole && errors.As(err, &refused) && refused.Class == "illegal_argument_exception":
		s.vectorsInside.Store(true)
		return s.mget(ctx, docs, parts)
	case err != nil:
		return nil, err
	case len(answer.Docs) != len(docs):
		return nil, s.client.Odd()
	}
	return answer.Docs, nil
}

func unseal(doc shard.DocID, source []byte) (sink.Stored, bool, error) {
	m, plain, ok, err := sink.Unseal(source)
	if err != nil || !ok {
		return sink.Stored{}, false, err
	}
	return m.Stored(doc, plain), true, nil
}

// Refresh makes all written documents visible to All and Search.
func (s *Sink) Refresh(ctx context.Context) error {
	indices, err := s.indices(ctx)
	if err != nil {
		return err
	}
	return s.refresh(ctx, indices)
}

func (s *Sink) refresh(ctx context.Context, indices map[string]shard.Collection) error {
	if len(indices) == 0 {
		return nil
	}
	path := "/" + s.target(indices) + "/_refresh?ignore_unavailable=true"
	if err := s.client.Ask(ctx, http.MethodPost, path, nil, nil); err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	return nil
}

// refreshed calls refresh. The method ignores an error if the engine answered, because documents
// can be read without a refresh.
func (s *Sink) refreshed(ctx context.Context, indices map[string]shard.Collection) error {
	if err := s.refresh(ctx, indices); exchange.Status(err) == 0 {
		return err
	}
	return nil
}

// longestTarget limits the length of names in a path. OpenSearch accepts request lines of up to
// 4,096 bytes.
const longestTarget = 2_000

// target returns the names of indices for a path. The method lists the names, because a wildcard
// could match indices that lull has no permission to read. If the list is too long, target returns
// the wildcard.
func (s *Sink) target(indices map[string]shard.Collection) string {
	all := strings.Join(slices.Sorted(maps.Keys(indices)), ",")
	if len(all) > longestTarget {
		all = s.names.Wildcard()
	}
	return pathOf(all)
}

// pathOf escapes the name of an index, but keeps commas and *.
func pathOf(index string) string {
	return strings.NewReplacer("%2A", "*", "%2C", ",").Replace(url.PathEscape(index))
}

// Documents returns documents with their content, in one request.
func (s *Sink) Documents(ctx context.Context, docs []shard.DocID) ([]sink.Stored, error) {
	sources, err := s.sources(ctx, docs, true)
	if err != nil {
		return nil, err
	}
	out := make([]sink.Stored, len(docs))
	for i, source := range sources {
		if source != nil {
			out[i] = opened(docs[i], source)
		}
	}
	return out, nil
}

// opened returns a document, with its metadata if lull wrote it.
func opened(doc shard.DocID, source []byte) sink.Stored {
	if stored, ok, err := unseal(doc, source); ok && err == nil {
		return stored
	}
	return sink.Stored{Doc: doc, Document: source}
}

// indices returns the collection of each index that has documents of a collection. The names are
// the names in answers to searches. If a collection's name is an alias, the index behind the alias
// belongs to the collection. Without permission to list indices, indices uses the collections in
// the options.
func (s *Sink) indices(ctx context.Context) (map[string]shard.Collection, error) {
	found := make(map[string]shard.Collection)
	for _, c := range s.Collections {
		if index, ok := s.names.Index(c); ok {
			found[index] = c
		}
	}
	resolved, err := s.resolved(ctx, s.names.Wildcard())
	status := exchange.Status(err)
	if status == http.StatusNotFound || status >= 400 && status < 500 && len(found) > 0 {
		return found, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list indices: %w", err)
	}
	for _, i := range resolved.Indices {
		if c, ok := s.names.Collection(i.Name); ok && slices.Contains(i.Attributes, "open") {
			found[i.Name] = c
		}
	}
	for _, a := range resolved.Aliases {
		if c, ok := s.names.Collection(a.Name); ok {
			for _, i := range a.Indices {
				found[i] = c
			}
		}
	}
	return found, nil
}
