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
	// lull's collection. Without it there is one for one collection. Empty means "{collection}".
	Index string
	// Collections are the collections known to be written here. Prepare makes theirs.
	Collections []event.Collection
	// BulkDocuments and BulkBytes bound a request. A document larger than BulkBytes is sent alone.
	// 0 means 500 and 5 MB.
	BulkDocuments int
	BulkBytes     int64
	// Fields are those of Collection.
	Fields []string
	// Key gives the API key. Nil fails every request.
	Key func(context.Context) (string, error)
	// Transport sends requests. Nil means a new transport, which Close closes.
	Transport http.RoundTripper
}

// Sink writes to Typesense and reads back. It is safe for concurrent use.
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

// New checks the options and returns a Sink. It sends nothing; Ping does. Close it after use.
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

// Prepare makes the collections of those that are known. A collection that exists keeps its schema,
// and an alias keeps what it points to.
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

// Preparation are the requests that make the collections.
func (s *Sink) Preparation() (string, error) {
	var b strings.Builder
	for _, c := range s.Collections {
		if index, ok := s.names.Index(c); ok {
			fmt.Fprintf(&b, "POST /collections\n%s\n", s.schema(index))
		}
	}
	return b.String(), nil
}

// Fields of lull's own.
const (
	fieldOriginal = sink.MetaField           // the document as it was written, with the mark
	fieldText     = sink.MetaField + "_text" // all its words
)

// field is a field of a schema.
type field struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Index    bool   `json:"index"`
	Optional bool   `json:"optional"`
	Facet    bool   `json:"facet"`
}

// schema is how lull makes a collection. Every field is optional: documents may lack any.
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

// create makes a collection, and returns nil if it exists already. It refuses the name of an alias
// whose collection is gone: Typesense would answer from the new collection from then on, even after
// the alias is repaired. A key that may not read aliases cannot be checked.
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

// maxError bounds what is read of an answer that has no documents.
const maxError = 1 << 20

// collectionPath is the path of a collection's documents.
func collectionPath(index string) string {
	return "/collections/" + url.PathEscape(index) + "/documents"
}

// documentPath is the path of one document. Every byte of its id is escaped: Typesense takes a plus
// for a space, two dots for a way up, and "search" for a request of another kind.
func documentPath(index, id string) string {
	path := []byte(collectionPath(index) + "/")
	for _, b := range []byte(id) {
		path = fmt.Appendf(path, "%%%02X", b)
	}
	return string(path)
}

// message returns the text of an error. It may quote content, so it must not leave this package.
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
