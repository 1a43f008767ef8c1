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

// object is shorter for the bodies of requests.
type object = map[string]any

// ours selects the documents that lull wrote.
var ours = object{"exists": object{"field": sink.MetaField + ".fence"}}

// Ping asks for the engine's greeting, with credentials.
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
		return nil // serverless collections have no greeting; they answer 404 to clients with access
	case s.Product == OpenSearch && other != nil, // whatever the error is, the other product answered
		s.Product == Elasticsearch && a.Status == http.StatusMethodNotAllowed: // it lacks the module of the greeting
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

// severalIndices is part of what OpenSearch says where an alias names no one index to read from.
const severalIndices = "has more than one index associated with it"

// Get returns the current document, refreshed or not. It returns false if the document or the index
// is missing, or if lull did not write the document.
func (s *Sink) Get(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error) {
	sources, err := s.sources(ctx, []shard.DocID{doc}, true)
	if err != nil || sources[0] == nil {
		return sink.Stored{}, false, err
	}
	return unseal(doc, sources[0])
}

// Marks returns the current marks of documents, refreshed or not.
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

// sources are the bodies of documents, or the parts of them that are asked for; nil for one that is
// missing.
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
	// _mget takes the id in the body, where path cleaning cannot change it.
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
			out[at[i]] = append(json.RawMessage{}, d.Source...) // not nil: an index may keep no bodies
		}
	}
	return out, nil
}

// withVectors has Elasticsearch from 9.2 on put the vectors back into the documents that it gives
// back: it keeps them apart, unless the index says otherwise (see Template). Before 9.2 there is no
// such parameter.
const withVectors = "/_mget?_source=true&_source_exclude_vectors=false"

// copied is a document as _mget shows it.
type copied struct {
	ID      string          `json:"_id"`
	Version int64           `json:"_version"`
	Found   bool            `json:"found"`
	Source  json.RawMessage `json:"_source"`
	Error   *fault          `json:"error"`
}

// mget reads the current documents by id, in the order asked. parts selects the fields of each:
// true for all of it.
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

// Refresh makes what was written visible to All and Search.
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

// refreshed calls refresh. It ignores an error that the engine answers, because the engine can be
// read without a refresh.
func (s *Sink) refreshed(ctx context.Context, indices map[string]shard.Collection) error {
	if err := s.refresh(ctx, indices); exchange.Status(err) == 0 {
		return err
	}
	return nil
}

// longestTarget bounds the names in a path: OpenSearch takes 4,096 bytes of request line.
const longestTarget = 2_000

// target names indices in a path: one by one, because a wildcard may hit indices that we may not
// read, unless they are too many.
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

// opened returns a document, even if lull did not write it.
func opened(doc shard.DocID, source []byte) sink.Stored {
	if stored, ok, err := unseal(doc, source); ok && err == nil {
		return stored
	}
	return sink.Stored{Doc: doc, Document: source}
}

// indices finds the indices that hold collections, by the names that searches answer with. An index
// behind an alias that is a collection's belongs to that collection, whatever its own name. Without
// permission to look, the collections known from the options count.
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
