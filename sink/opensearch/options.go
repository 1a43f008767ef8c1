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
	// URL is the engine's address, http or https, with a path where it is behind one, without
	// credentials.
	URL string
	// Index is the name of a collection's index; {collection} is replaced by the collection's name.
	// Without it there is one index for one collection. Empty means "{collection}".
	Index string
	// Collections are the collections known to be written here. Prepare names their indices;
	// without {collection} in Index it must be exactly one.
	Collections []shard.Collection
	// BulkDocuments and BulkBytes bound a request. A document larger than BulkBytes is sent alone.
	// 0 means 500 and 5 MB.
	BulkDocuments int
	BulkBytes     int64
	// Versions sends fences as external versions.
	Versions bool
	// Product is the engine that is there. Another one is refused.
	Product Product
	// Serverless leaves out what serverless collections do not offer. It excludes Versions.
	Serverless bool
	// Authenticate adds credentials to a request, by changing its headers. It is called for every
	// request. If it fails, nothing is sent. Its errors must not quote secrets. Nil adds none.
	Authenticate func(*http.Request) error
	// Template is the name of the index template. Empty means "lull".
	Template string
	// Transport sends requests. Nil means one of our own, which Close closes.
	Transport http.RoundTripper
}

// Sink writes to OpenSearch and reads back. It is safe for concurrent use.
type Sink struct {
	Options

	names   sink.Names
	client  *exchange.Client
	targets *targets

	vectorsInside atomic.Bool // the engine returns vectors with their documents: see withVectors

	requireAlias bool // the index has an alias for writes only: see Into
}

var (
	_ sink.Sink   = (*Sink)(nil)
	_ sink.Reader = (*Sink)(nil)

	_ sink.Sampler = (*Sink)(nil)

	_ sink.Generator = (*Sink)(nil)
)

// New checks the options and returns a Sink. It sends nothing; Ping does. Close it after use.
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
