// SPDX-License-Identifier: Apache-2.0

package vertex

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Options say where the data stores are and how to write to them.
type Options struct {
	// URL is the address of the API, with the project and the location of the data stores:
	// https://discoveryengine.googleapis.com/v1/projects/PROJECT/locations/LOCATION.
	URL string
	// DataStore is the id of a collection's data store; {collection} is replaced by the
	// collection's name. Without {collection}, DataStore is one data store for one collection.
	DataStore string
	// Collections are the collections that are known to be written to this sink.
	Collections []event.Collection
	// Content is a JSON pointer to the text that is sent as the content of the document. Empty
	// means that no content is sent.
	Content string
	// MimeType is the type of the content. Empty means text/html.
	MimeType string
	// Parallel is how many requests of one Write run at the same time. 0 means 16.
	Parallel int
	// Authenticate adds credentials to a request, by changing its headers. The sink calls
	// Authenticate for every request. If Authenticate fails, the request is not sent. The errors of
	// Authenticate must not quote secrets. A nil Authenticate adds nothing.
	Authenticate func(*http.Request) error
}

// The defaults of Options.
const (
	defaultMimeType = "text/html"
	defaultParallel = 16
)

// Sink writes documents to Vertex AI Search and reads them. A Sink is safe for concurrent use.
type Sink struct {
	Options

	names  sink.Names
	client *exchange.Client
	there  sync.Map // the names of data stores that are known to exist
}

var (
	_ sink.Sink    = (*Sink)(nil)
	_ sink.Reader  = (*Sink)(nil)
	_ sink.Marker  = (*Sink)(nil)
	_ sink.Auditor = (*Sink)(nil)
)

// New checks the options and returns a Sink. New sends nothing to the engine. Close the sink after
// use.
func New(o Options) (*Sink, error) {
	o.MimeType = cmp.Or(o.MimeType, defaultMimeType)
	o.Parallel = cmp.Or(max(o.Parallel, 0), defaultParallel)
	to := exchange.NewTransport()
	to.MaxIdleConnsPerHost = o.Parallel
	client, err := exchange.Client{
		Kind: Name, Product: "Discovery Engine", Hints: hints, Authenticate: o.Authenticate, Transport: to,
		Class: func(a exchange.Answer) string { return faultOf(a).class() },
	}.Open(o.URL)
	if err != nil {
		return nil, err
	}
	if !placePattern.MatchString(client.Address) {
		return nil, errors.New("sink url: end it with /v1/projects/PROJECT/locations/LOCATION")
	}
	names, err := sink.NewNames(cmp.Or(o.DataStore, sink.Placeholder), o.Collections)
	if err != nil {
		return nil, err
	}
	return &Sink{Options: o, names: names, client: client}, nil
}

// Close closes idle connections.
func (s *Sink) Close() error { return s.client.Close() }

// store returns the path of a data store, relative to the address.
func store(name string) string {
	return "/collections/default_collection/dataStores/" + escape(name)
}

// documents returns the path of the documents of a data store.
func documents(name string) string { return store(name) + "/branches/default_branch/documents" }

// escape escapes a name, so that it stays one segment of a path. A valid name contains no character
// to escape.
func escape(name string) string {
	return strings.NewReplacer("%", "%25", "/", "%2F", "?", "%3F", "#", "%23").Replace(name)
}
