// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/url"

	"github.com/lullhq/lull/internal/seam/outbound"
	"github.com/lullhq/lull/source"
)

// Connect opens a connection to the host of a source with the setting fetch, as Fetch does, and
// closes the connection. It sends no request, because the source would log a request for a missing
// document, and its operators would search for the reason.
func Connect(ctx context.Context, f source.Fetch) error {
	u, err := url.Parse(f.URL)
	if err != nil {
		return invalidFetch("fetch.url is not an address")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*outbound.DialTimeout)
	defer cancel()
	port := "443"
	if u.Scheme == "http" {
		port = "80"
	}
	conn, err := outbound.Transport(outbound.Reachable(f.Private())).DialContext(ctx, "tcp",
		net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)))
	if err != nil {
		return unanswered(err)
	}
	defer func() { _ = conn.Close() }() // nothing was sent, so an error of Close does not matter
	if u.Scheme == "http" {
		return nil
	}
	with := &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	if err := tls.Client(conn, with).HandshakeContext(ctx); err != nil {
		return unanswered(err)
	}
	return nil
}
