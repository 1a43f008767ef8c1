// SPDX-License-Identifier: Apache-2.0

package typesense

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Options say where a sink is and how to write to it.
type Options struct {
	// URL is the server's address, http or https.
	URL string
	// Index is the name of a collection in Typesense; {collection} is replaced by the name of
	// lull's collection. Without {collection}, Index is one collection in Typesense for one
	// collection of lull. Empty means "{collection}".
	Index string
	// Collections are the collections that are known to be written to this sink. Prepare creates
	// these collections in Typesense.
	Collections []event.Collection
	// BulkDocuments and BulkBytes limit one request. A document larger than BulkBytes is sent
	// alone. 0 means 500 documents, or 5 MB.
	BulkDocuments int
	BulkBytes     int64
	// Fields are the typed fields: see [Collection].
	Fields []string
	// Key returns the API key. If Key is nil, every request fails.
	Key func(context.Context) (string, error)
	// Transport sends requests. If Transport is nil, New makes a transport, which Close closes.
	Transport http.RoundTripper
}

// Sink writes documents to Typesense and reads them. A Sink is safe for concurrent use.
type Sink struct {
	Options

	names  sink.Names
	client *exchange.Client
}

var (
	_ sink.Sink     = (*Sink)(nil)
	_ sink.Reader   = (*Sink)(nil)
	_ sink.Preparer = (*Sink)(nil)
)

// New checks the options and returns a Sink. New sends nothing to the server. Close the sink after
// use.
func New(o Options) (*Sink, error) {
	o.Index = cmp.Or(o.Index, sink.Placeholder)
	client, err := exchange.Client{
		Kind: Name, Product: "Typesense", Hints: hints, Authenticate: authenticate(o.Key), Transport: o.Transport,
	}.Open(o.URL)
	if err != nil {
		return nil, err
	}
	names, err := sink.NewNames(o.Index, o.Collections)
	if err != nil {
		return nil, err
	}
	return &Sink{Options: o, names: names, client: client}, nil
}

// Close closes idle connections.
func (s *Sink) Close() error { return s.client.Close() }

// Prepare creates the known collections in Typesense. Prepare changes neither an existing
// collection nor an alias.
func (s *Sink) Prepare(ctx context.Context) error {
	for _, c := range s.Collections {
		index, ok := s.names.Index(c)
		if !ok {
			continue
		}
		found, err := s.ask(ctx, "look for the collection "+index, "/collections/"+url.PathEscape(index), nil)
		if err == nil && !found {
			err = s.create(ctx, index)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Preparation returns the requests that create the collections, as text.
func (s *Sink) Preparation() (string, error) {
	var b strings.Builder
	for _, c := range s.Collections {
		if index, ok := s.names.Index(c); ok {
			fmt.Fprintf(&b, "POST /collections\n%s\n", s.schema(index))
		}
	}
	return b.String(), nil
}

// The fields that lull adds to documents.
const (
	fieldOriginal = sink.MetaField           // the document as it was written, with lull's metadata
	fieldText     = sink.MetaField + "_text" // all words of the document
)

// field is a field of a schema.
type field struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Index    bool   `json:"index"`
	Optional bool   `json:"optional"`
	Facet    bool   `json:"facet"`
}

// schema returns the body of the request that creates a collection. Every field is optional,
// because a document may lack it.
func (s *Sink) schema(index string) []byte {
	fields := []field{{Name: fieldOriginal, Type: "string", Optional: true}}
	nested := false
	for _, f := range s.Fields {
		name, kind, _ := strings.Cut(f, ":")
		kind, facet := strings.CutSuffix(kind, ":facet")
		fields = append(fields, field{Name: name, Type: kind, Index: true, Optional: true, Facet: facet})
		nested = nested || strings.Contains(name, ".")
	}
	if len(s.Fields) == 0 {
		fields = append(fields, field{Name: fieldText, Type: "string", Index: true, Optional: true})
	}
	text, _ := json.Marshal(map[string]any{"name": index, "fields": fields, "enable_nested_fields": nested})
	return text
}

// create makes a collection. The method returns nil if the collection exists already. The method
// refuses a name that is an alias of a deleted collection. Typesense would then use the new
// collection for that name, even after the alias is repaired. If the key may not read aliases,
// create cannot check that.
func (s *Sink) create(ctx context.Context, index string) error {
	aliased, err := s.ask(ctx, "look for the alias "+index, "/aliases/"+url.PathEscape(index), nil)
	denied := exchange.Status(err) == http.StatusUnauthorized || exchange.Status(err) == http.StatusForbidden
	if err != nil && !denied {
		return err
	}
	if aliased {
		return fmt.Errorf("make the collection %s: an alias has this name, and its collection does not exist: "+
			"let the alias name a collection that exists, or delete the alias", index)
	}
	a := s.client.Do(ctx, http.MethodPost, "/collections", exchange.TypeJSON, s.schema(index), maxError)
	if !a.OK() && a.Status != http.StatusConflict {
		return fmt.Errorf("make the collection %s: %w", index, s.client.Fault(a))
	}
	return nil
}

// maxError is how many bytes are read of an answer without documents.
const maxError = 1 << 20

// collectionPath returns the path of the documents of a collection.
func collectionPath(index string) string {
	return "/collections/" + url.PathEscape(index) + "/documents"
}

// documentPath returns the path of one document. documentPath escapes every byte of the id.
// Otherwise Typesense would read a plus as a space, two dots as the parent path, and "search" as a
// search request.
func documentPath(index, id string) string {
	path := []byte(collectionPath(index) + "/")
	for _, b := range []byte(id) {
		path = fmt.Appendf(path, "%%%02X", b)
	}
	return string(path)
}

// message returns the text of an error. The text may quote content of a document, so it must not
// leave this package.
func message(body []byte) string {
	var m struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body, &m)
	return m.Message
}

var hints = map[int]string{
	0:                             "check the url",
	http.StatusUnauthorized:       "the API key is wrong or has no permission for this: check the sink's auth",
	http.StatusForbidden:          "the API key is wrong or has no permission for this: check the sink's auth",
	http.StatusServiceUnavailable: "the server is not ready or lags behind its leader: try again later",
}
