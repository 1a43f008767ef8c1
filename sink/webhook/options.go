// SPDX-License-Identifier: Apache-2.0

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
	// URL is the receiver's address, with http or https. The URL must not contain a password.
	URL string
	// Secrets returns one secret or two, separated by white space. Each secret is whsec_ followed
	// by base64 of 24 to 64 bytes. A request has a signature by each secret. The sink calls Secrets
	// for every request, so Secrets should cache its result. If Secrets is nil, requests are not
	// signed.
	Secrets func(context.Context) (string, error)
	// Versions says that the receiver compares fences and answers 409 to a smaller fence.
	Versions bool
	// BulkDocuments and BulkBytes limit one request. A document larger than BulkBytes is sent
	// alone. 0 means 1 document, or 5 MB.
	BulkDocuments int
	BulkBytes     int64
	// Private allows a receiver in a private network or on this machine. Private is not needed if
	// the host in URL is localhost or such an IP address.
	Private bool
	// Parallel is how many requests of one Write run at the same time. 0 means 8.
	Parallel int
	// Now returns the time at which a request is signed. Nil means time.Now.
	Now func() time.Time
}

const defaultParallel = 8

// Sink writes to a receiver. A Sink is safe for concurrent use.
type Sink struct {
	Options

	transport *http.Transport
}

var _ sink.Sink = (*Sink)(nil)

// New checks the options and returns a Sink. New sends nothing to the receiver. Close the sink
// after use.
func New(o Options) (*Sink, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, errors.New("sink url: this is not a URL") // do not quote the text, which might contain a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("sink url: write http:// or https:// and a host, such as https://host:8443")
	case u.User != nil:
		return nil, errors.New("sink url: it contains credentials: remove them, and set auth.kind: key to sign requests")
	}
	o.BulkDocuments = max(o.BulkDocuments, 1)
	o.Parallel = cmp.Or(max(o.Parallel, 0), defaultParallel)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Sink{Options: o, transport: newTransport(o.Private || isPrivate(u))}, nil
}

// newTransport returns the transport for hosts that settings name. The connections of the transport
// discard unsent bytes when the connections are closed.
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
