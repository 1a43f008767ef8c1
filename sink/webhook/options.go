package webhook

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/lullhq/lull/internal/seam/outbound"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Options say where a receiver is and how to write to it.
type Options struct {
	// URL is the receiver's address, http or https. It must not hold a password.
	URL string
	// Secrets gives one secret or two, separated by white space, each as whsec_ and base64 of 24 to
	// 64 bytes. A request has a signature by each. It is called for every request, and should cache.
	// Nil means that requests are not signed.
	Secrets func(context.Context) (string, error)
	// Versions says that the receiver compares fences and answers 409 to an older one.
	Versions bool
	// BulkDocuments and BulkBytes bound a request; a document larger than BulkBytes goes alone. 0
	// means 1 and 5 MB.
	BulkDocuments int
	BulkBytes     int64
	// Private lets the receiver have an address in a private network, or of this machine. If URL
	// itself names such an address, it is allowed without Private.
	Private bool
	// Parallel is how many requests of one Write are under way at the same time. 0 means 8.
	Parallel int
	// Now is the time that requests are signed at. Nil means time.Now.
	Now func() time.Time
}

const defaultParallel = 8

// Sink writes to a receiver. It is safe for concurrent use.
type Sink struct {
	Options

	transport *http.Transport
}

var _ sink.Sink = (*Sink)(nil)

// New checks the options and returns a Sink. It sends nothing; Ping does. Close it after use.
func New(o Options) (*Sink, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, errors.New("sink url: this is not a URL") // which might hold a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("sink url: use http://host:port or https://host")
	case u.User != nil:
		return nil, errors.New("sink url: it contains credentials: remove them, and set auth.kind: key to sign requests")
	}
	o.BulkDocuments = max(o.BulkDocuments, 1)
	o.Parallel = cmp.Or(max(o.Parallel, 0), defaultParallel)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Sink{Options: o, transport: newTransport(o.Private || near(u))}, nil
}

// newTransport is the one for hosts that settings name, with connections that drop what they have
// not sent.
func newTransport(private bool) *http.Transport {
	to := outbound.Transport(outbound.Reachable(private))
	dial := to.DialContext
	to.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		exchange.DropUnsent(conn)
		return conn, err
	}
	return to
}

// Close closes idle connections.
func (s *Sink) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}
