package opensearch

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Options say where a sink is and how to write to it.
type Options struct {
	// URL is the engine's address, http or https, with a path where it is behind one, without
	// credentials.
	URL string
	// Index is the name of a collection's index; {collection} stands for the collection's name.
	// Without it there is one index for one collection. Empty means "{collection}".
	Index string
	// Collections are the collections known to be written here. Prepare names their indices;
	// without {collection} in Index it must be exactly one.
	Collections []shard.Collection
	// BulkDocuments and BulkBytes bound a request; a document larger than BulkBytes goes alone. 0
	// means 500 and 5 MB.
	BulkDocuments int
	BulkBytes     int64
	// Versions sends fences as external versions.
	Versions bool
	// Serverless leaves out what serverless collections do not offer. It excludes Versions.
	Serverless bool
	// Authenticate adds credentials to a request, by changing its headers. It is called for every
	// request, and where it fails nothing is sent. Its errors must not quote secrets. Nil adds
	// none.
	Authenticate func(*http.Request) error
	// Template is the name of the index template. Empty means "lull".
	Template string
	// Transport sends requests. Nil means one of our own, which Close closes.
	Transport http.RoundTripper
}

// Defaults of Options.
const (
	defaultIndex         = placeholder
	defaultBulkDocuments = 500
	defaultBulkBytes     = 5 << 20
	defaultTemplate      = "lull"
)

// dialTimeout is shorter than any sensible deadline of a write: a host that does not answer must
// show as a request that was never sent, not as one whose outcome is unknown.
const dialTimeout = 2 * time.Second

// Sink writes to OpenSearch and reads back. It is safe for concurrent use.
type Sink struct {
	Options

	names   names
	address string // the URL without a slash at its end
	targets targets

	requireAlias bool // the index has an alias of its own, by which it is written: see Into
}

var (
	_ sink.Sink   = (*Sink)(nil)
	_ sink.Reader = (*Sink)(nil)

	_ sink.Sampler = (*Sink)(nil)

	_ sink.Generator = (*Sink)(nil)
)

// New checks the options and returns a Sink. It sends nothing; Ping does. Close it after use.
func New(o Options) (*Sink, error) {
	o.Index = cmp.Or(o.Index, defaultIndex)
	o.BulkDocuments = cmp.Or(max(o.BulkDocuments, 0), defaultBulkDocuments)
	o.BulkBytes = cmp.Or(max(o.BulkBytes, 0), defaultBulkBytes)
	o.Template = cmp.Or(o.Template, defaultTemplate)
	if o.Versions && o.Serverless {
		return nil, errors.New("a serverless collection has no versions: leave Versions out")
	}
	address, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	names, err := newNames(o.Index, o.Collections)
	if err != nil {
		return nil, err
	}
	if o.Transport == nil {
		o.Transport = newTransport()
	}
	return &Sink{Options: o, names: names, address: address, targets: targets{known: map[string]target{}}}, nil
}

// parseURL never quotes a URL: it might hold a password.
func parseURL(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", errors.New("sink url: not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", errors.New("sink url: want http://host:port or https://host")
	case u.User != nil:
		return "", errors.New("sink url: holds credentials: put them where auth says")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("sink url: has a query or a fragment")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// dial makes a connection that drops what it has not sent when it is closed. A server that stalls
// would otherwise get the whole of a request after we hung up, and apply it.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // where it cannot be set, fences and leases have to do
	}
	return conn, err
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dial,
		TLSHandshakeTimeout: dialTimeout,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     30 * time.Second,
	}
}

// Close closes idle connections.
func (s *Sink) Close() error {
	if c, ok := s.Transport.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
	return nil
}
