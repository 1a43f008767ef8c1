// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"cmp"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Options say where a sink is and how to write to it.
type Options struct {
	// URL is the engine's address, with http or https and without credentials. The URL has a path
	// if a proxy serves the engine under a path.
	URL string
	// Index is the name of a collection's index; {collection} is replaced by the collection's name.
	// Without {collection}, Index is one index for one collection. Empty means "{collection}".
	Index string
	// Collections are the collections that are known to be written to this sink. Prepare uses the
	// names of their indices. If Index has no {collection}, Collections must contain exactly one
	// collection.
	Collections []shard.Collection
	// BulkDocuments and BulkBytes limit one request. A document larger than BulkBytes is sent
	// alone. 0 means 500 documents, or 5 MB.
	BulkDocuments int
	BulkBytes     int64
	// Versions says that the sink sends fences as external versions.
	Versions bool
	// Product is the expected engine. The sink refuses to write to another product.
	Product Product
	// Serverless omits from requests what serverless collections do not support. Do not set
	// Serverless together with Versions.
	Serverless bool
	// Authenticate adds credentials to a request, by changing its headers. The sink calls
	// Authenticate for every request. If Authenticate fails, the request is not sent. The errors of
	// Authenticate must not quote secrets. A nil Authenticate adds nothing.
	Authenticate func(*http.Request) error
	// Template is the name of the index template. Empty means "lull".
	Template string
	// Transport sends requests. If Transport is nil, New makes a transport, which Close closes.
	Transport http.RoundTripper
}

// Sink writes documents to OpenSearch and reads them. A Sink is safe for concurrent use.
type Sink struct {
	Options

	names   sink.Names
	client  *exchange.Client
	targets *targets

	vectorsInside atomic.Bool // the engine always returns vectors inside their documents: see withVectors

	requireAlias bool // a write must go through the alias of a rebuild: see Into
}

var (
	_ sink.Sink   = (*Sink)(nil)
	_ sink.Reader = (*Sink)(nil)

	_ sink.Sampler = (*Sink)(nil)

	_ sink.Generator = (*Sink)(nil)
)

// New checks the options and returns a Sink. New sends nothing to the engine. Close the sink after
// use.
func New(o Options) (*Sink, error) {
	o.Index = cmp.Or(o.Index, sink.Placeholder)
	o.Template = cmp.Or(o.Template, "lull")
	if o.Versions && o.Serverless {
		return nil, errors.New("a serverless collection has no versions: leave Versions out")
	}
	client, err := o.client()
	if err != nil {
		return nil, err
	}
	names, err := sink.NewNames(o.Index, o.Collections)
	if err != nil {
		return nil, err
	}
	return &Sink{Options: o, names: names, client: client, targets: newTargets()}, nil
}

func (o *Options) client() (*exchange.Client, error) {
	return exchange.Client{
		Kind: o.Product.kind(), Product: o.Product.String(), Hints: hints, Authenticate: o.Authenticate,
		Transport: o.Transport,
		Class:     func(a exchange.Answer) string { return faultOf(a).class() },
		Check:     func(a exchange.Answer) error { return o.Product.check(a.Header) },
	}.Open(o.URL)
}

// Close closes idle connections.
func (s *Sink) Close() error { return s.client.Close() }
